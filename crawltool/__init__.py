"""crawltool: a web crawler as a toolkit of composable Unix programs."""
