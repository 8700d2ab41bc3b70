const origin = /^https?:\/\/[^/?#]*/i

const rawPathOf = (target: string): string =>
  target
    .replace(origin, "")
    .replace(/[?#;].*$/s, "")
    .replace(/\/{2,}/g, "/")

const decode = (path: string): string | undefined => {
  try {
    return decodeURI(path)
  } catch {
    return undefined
  }
}

/** As lenient as the platform's router. */
export const pathOf = (target: string): string => {
  const path = rawPathOf(target)
  return (path.includes("%") ? (decode(path) ?? path) : path).replace(/(?<=.)\/$/, "")
}

/** Whether the path has a wrong escape, with which the router knows no path. */
export const isMisspelt = (target: string): boolean => target.includes("%") && decode(rawPathOf(target)) === undefined
