"""Commands about draft structures: build a tree, replay structures, weigh positions, calibrate scores."""
