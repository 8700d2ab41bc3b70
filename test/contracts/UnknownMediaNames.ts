/** As well-formed as any. */
export const id = "a".repeat(32)

/** Nothing that was ever given a file, each in the clothes of something that could be. */
export const unknownNames: ReadonlyArray<string> = [
  "",
  ".",
  "..",
  "/",
  "canary.png",
  "../canary.png",
  "public/../../canary.png",
  "public/..%2f..%2fcanary.png",
  `public/${id}/../../../canary.png`,
  `../public/${id}.png`,
  `/public/${id}.png`,
  `./public/${id}.png`,
  `public//${id}.png`,
  `public\\${id}.png`,
  `other/${id}.png`,
  `PUBLIC/${id}.png`,
  `public/${id}`,
  `public/${id}.PNG`,
  `public/${id}.html`,
  `public/${id}.png/`,
  `public/${id}.png\n`,
  `public/${id}.png\0`,
  `public/${id.slice(1)}.png`,
  `public/${id}a.png`,
  `public/${id.slice(1)}..png`,
  `public/${id.slice(1)}%.png`,
  `incoming/${id}.part`,
  "/etc/passwd"
]
