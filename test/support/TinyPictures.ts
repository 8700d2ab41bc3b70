/** Small pictures, whole: one pixel each. */
export const pixels = {
  "image/png": Buffer.from(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
    "base64"
  ),
  "image/gif": Buffer.from("R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7", "base64")
} as const

export const png = pixels["image/png"]
export const gif = pixels["image/gif"]

/** The same picture with so many bytes in all. */
export const grown = (bytes: number): Buffer => Buffer.concat([png, Buffer.alloc(bytes - png.length)])

export const dataUrl = (bytes: Uint8Array, type: string): string =>
  `data:${type};base64,${Buffer.from(bytes).toString("base64")}`
