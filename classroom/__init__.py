"""For teachers: hand out the exercises, and grade what comes back.

    make release                 the students' notebooks, in `release/`
    make grade FROM=folder       grades.csv and feedback pages, in `graded/`

`submissions` reads what came, `executing` runs it behind `walls`, `judging`
applies visible and hidden checks where no student's code runs.

See docs/teaching.md. Nothing here is installed with the package.
"""
