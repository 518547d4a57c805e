"""What is said to devices across a network, apart from who says it."""
