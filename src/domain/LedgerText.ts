export const longestNote = 1000
/** One longer may have more bytes than a row of the index that makes it unique. */
export const longestRef = 800
