"""What the Python suites share: waiting, PostgreSQL servers, proxies, machines, and what /proc says of processes."""
