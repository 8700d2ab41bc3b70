import type { Bug } from "./Bug.ts"

const caughtBy = ["test/services/statements/Statements.test.ts"]

/** Bugs in the statements of organizations. */
export const statementBugs: ReadonlyArray<Bug> = [
  {
    name: "a statement ends a month late",
    file: "src/domain/Month.ts",
    find: "[Number(number) - 1, Number(number)]",
    replace: "[Number(number) - 1, Number(number) + 1]",
    caughtBy
  },
  {
    name: "a refund is listed twice",
    file: "src/services/statements/Statements.ts",
    find: 'refunds: of("refunds")',
    replace: 'refunds: [...of("refunds"), ...of("refunds")]',
    caughtBy
  },
  {
    name: "the model of a removed request is forgotten",
    file: "migrations/0041_statements.sql",
    find: "SELECT r.id, r.model,",
    replace: "SELECT r.id, NULL,",
    caughtBy
  }
]
