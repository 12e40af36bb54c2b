"""The contract: plain data and protocols that every layer and every adapter shares."""
