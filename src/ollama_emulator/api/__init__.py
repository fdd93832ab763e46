"""What the daemon answers: its routes, and the handlers behind them."""
