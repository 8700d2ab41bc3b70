/** The names that a dialect has for the fields of a chat. */
export type FieldNames = Readonly<Record<string, string>>

interface Named {
  readonly message: string
  readonly hint?: string | undefined
  readonly param: string | null
}

/** A refusal in the words of a dialect. */
export const renameField = ({ hint, message, param }: Named, names: FieldNames): Named => {
  const name = param === null ? undefined : names[param]
  const rename = (text: string) => (name === undefined ? text : text.replaceAll(`\`${param}\``, `\`${name}\``))
  return {
    message: rename(message),
    param: name ?? param,
    ...(hint === undefined ? undefined : { hint: rename(hint) })
  }
}
