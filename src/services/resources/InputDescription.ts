import type { About, Form, Inputs } from "./Input.ts"

/** What the console knows of an input; plain data. */
export interface InputDescription extends About {
  readonly name: string
  readonly form: Form
  readonly none?: string
}

export const describeInputs = (inputs: Inputs): ReadonlyArray<InputDescription> =>
  Object.entries(inputs).map(([name, { column, description, form, isRequired, label, needs, none, suggested }]) => ({
    name,
    description,
    label,
    form,
    ...(column !== undefined && { column }),
    ...(needs !== undefined && { needs }),
    ...(suggested !== undefined && { suggested }),
    ...(isRequired !== undefined && { isRequired }),
    ...(none !== undefined && { none: none.means })
  }))
