"""For teachers: hand out the exercises, and grade what comes back.

    make release                 the students' notebooks, in `release/`
    make grade FROM=folder       tables and feedback pages, in `graded/`
    make handback TO=pages.zip   the pages, for Moodle, Canvas or nbgrader

`submissions` reads what came, `executing` runs it behind `walls`, `judging`
applies visible and hidden checks where no student's code runs. `results` keeps
what was found; `spreadsheets`, `feedback`, `late` and `lms` make of it what
teachers, students, and Moodle or Canvas get.

See teaching/README.md. Nothing here is installed with the package.
"""
