/** Plants the bug that PLANTED_BUG names, before a test file is imported. */

import { bugs } from "./Bugs.ts"

const name = process.env["PLANTED_BUG"]
const bug = bugs.find((one) => one.name === name)
if (name !== undefined && bug === undefined) throw new Error(`no bug is named ${name}`)
if (bug?.kind === "module") bug.plant()
