"""For teachers: hand out the exercises, and grade what comes back.

    make release                 the students' notebooks, in `release/`
    make grade FROM=folder       tables and feedback pages, in `graded/`
    make handback TO=pages.zip   the pages, for Moodle, Canvas or nbgrader

`submissions` reads the files, `executing` runs them behind `walls`, and
`judging` applies visible and hidden checks where no student's code runs.
`results` keeps the results and writes them: `spreadsheets` makes the tables
for teachers, `feedback` the pages for students. `late` counts late days, and
`lms` fills in a table of Moodle or Canvas. `records` has the plain values that
go from module to module.

See teaching/README.md. Nothing here is installed with the package.
"""
