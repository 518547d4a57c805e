"""Graphics as SVG text: layout, colours and elements, without Matplotlib and the rest of the package.

Inputs are plain data: boxes and arrows, time intervals, columns of numbers.
"""
