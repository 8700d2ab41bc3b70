/** The names that a dialect has for the fields of a chat. */
export type FieldNames = Readonly<Record<string, string>>

interface Named {
  readonly message: string
  readonly param: string | null
}

/** A refusal in the words of a dialect. */
export const renameField = ({ message, param }: Named, names: FieldNames): Named => {
  const name = param === null ? undefined : names[param]
  return name === undefined
    ? { message, param }
    : { message: message.replaceAll(`\`${param}\``, `\`${name}\``), param: name }
}
