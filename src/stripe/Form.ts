/** A field of a form, or fields below its name. */
export type FormValue = string | number | ReadonlyArray<FormValue> | { readonly [name: string]: FormValue }

const pairsOf = (name: string, value: FormValue): ReadonlyArray<[string, string]> => {
  if (typeof value === "string" || typeof value === "number") return [[name, String(value)]]
  return Object.entries(value).flatMap(([key, inner]) => pairsOf(`${name}[${key}]`, inner))
}

/** Names in brackets, as `line_items[0][quantity]=1`. */
export const encodeForm = (fields: Readonly<Record<string, FormValue>>): string =>
  new URLSearchParams(Object.entries(fields).flatMap(([name, value]) => pairsOf(name, value))).toString()
