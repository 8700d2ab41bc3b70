/** The oldest major version of PostgreSQL that the tests run on; the embedded server is the newest. */
export const oldestTested = 15
