"""Pictures as text: layout, colours and SVG, without Matplotlib and without anything of the rest of the package.

What is drawn is given as plain data: boxes and arrows, stretches of time, columns of numbers.
"""
