/** The number of cases that a test runs: few in `npm test`, all in the project `long` of `npm run test:slow`. */

/** A number of cases, or `all`. vitest.config.ts or the developer sets it. */
const wanted = process.env["TEST_CASES"]

export const hasAllCases = wanted === "all"

if (wanted !== undefined && !hasAllCases && !/^[1-9]\d*$/.test(wanted)) {
  throw new Error(`TEST_CASES must be a number of cases or "all", not "${wanted}".`)
}

/**
 * Returns the number of cases of a property: at most 20, unless TEST_CASES sets another number. The test's file name
 * must end in `.long.test.ts`.
 */
export const runs = (all: number): number =>
  hasAllCases ? all : wanted === undefined ? Math.min(all, 20) : Number(wanted)
