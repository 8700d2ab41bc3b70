/** How much a test does: a short form in `npm test`, every case in the project `long` of `npm run test:slow`. */

/** A number of cases, or `all`; set by vitest.config.ts or by hand. */
const wanted = process.env["TEST_CASES"]

export const hasAllCases = wanted === "all"

if (wanted !== undefined && !hasAllCases && !/^[1-9]\d*$/.test(wanted)) {
  throw new Error(`TEST_CASES must be a number of cases or "all", not "${wanted}".`)
}

/** How many cases a property runs: at most 20 unless more are wanted. The name of its file ends in `.long.test.ts`. */
export const runs = (all: number): number =>
  hasAllCases ? all : wanted === undefined ? Math.min(all, 20) : Number(wanted)
