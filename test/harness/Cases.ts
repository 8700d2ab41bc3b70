/** How much a test does: a short form in `npm test`, every case in the project `long` of `npm run test:slow`. */

/** vitest.config.ts sets the variable. */
export const hasAllCases = process.env["TEST_CASES"] === "all"

/** How many cases a property runs: at most 20, or all of them. The name of its file ends in `.long.test.ts`. */
export const runs = (all: number): number => (hasAllCases ? all : Math.min(all, 20))
