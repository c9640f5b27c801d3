"""Measurements of Mainspring, always beside something else measured in the same minutes on the same server.

``python -m benchmarks engine`` sets our engine beside a bare probe of what the server and the language allow;
``python -m benchmarks peers`` beside the workers of Dramatiq and Taskiq. An absolute figure says more about the machine
than about the code, so what is printed first and kept in the documentation are ratios.
"""
