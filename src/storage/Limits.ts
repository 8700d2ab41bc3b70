/** The most that `read` gives back, in bytes: it holds all of it. */
export const largestRead = 128 * 1024 * 1024
