"""The daemon's routes and the handlers behind them."""
