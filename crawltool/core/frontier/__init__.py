"""Which URL may be asked, when, and what follows from its answer?

The order to read it in: `turn` is the heart and the only way in. What a turn takes in goes through `admission` (with
`bans`, `budgets`, `channels`, `ordering`, `importance`, `listings`), what comes back through `settling` (with `hosting`,
`robotsanswers`, `lessons`, `reputation`, `discovery`), what goes out through `release`, what a person says through
`steering` (with `wishes`, `jobs`, `deadletters`). All of them keep their memory in the `book`: a `workbench` of hosts in use
(`hosts`, `queue`, `politeness`, `timetable`), a `waitingroom` of the others, and the `rows` that the store holds.
"""
