"""What can be known without a GPU."""
