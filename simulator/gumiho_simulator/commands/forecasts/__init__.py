"""Commands from rates and logs to tau and speed: predict, fit, forecast, validate, sweep."""
