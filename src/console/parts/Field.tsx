import type { ComponentChildren } from "preact"
import { useContext, useId, useLayoutEffect } from "preact/hooks"
import { InvalidField } from "./Dialog.tsx"

export interface Labels {
  readonly name: string
  readonly label: string
  readonly hint?: string
}

/** A labelled control of a form, with the error if the gateway rejected its value. */
const LabelledControl = ({
  children,
  hint,
  label,
  name
}: Labels & {
  readonly children: (control: {
    readonly id: string
    readonly "aria-describedby": string
    readonly "aria-invalid": boolean
  }) => ComponentChildren
}) => {
  const id = useId()
  const invalid = useContext(InvalidField)
  const problem = invalid?.param === name ? invalid.message : undefined
  useLayoutEffect(() => {
    if (problem !== undefined) document.getElementById(id)?.focus()
  }, [problem, id])
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {children({ id, "aria-describedby": `${id}-hint`, "aria-invalid": problem !== undefined })}
      <small id={`${id}-hint`} {...(problem === undefined ? { class: "soft" } : { class: "problem", role: "alert" })}>
        {problem ?? hint}
      </small>
    </div>
  )
}

export const TextField = ({
  hint,
  label,
  name,
  onType,
  value,
  ...input
}: Labels & {
  readonly type?: "datetime-local"
  readonly inputMode?: "decimal" | "numeric" | "url"
  readonly value?: string
  readonly placeholder?: string
  readonly pattern?: string
  readonly title?: string
  readonly required?: boolean
  /** The id of a list of suggestions. */
  readonly list?: string
  /** Receives the text after each change. */
  readonly onType?: (text: string) => void
}) => (
  <LabelledControl name={name} label={label} {...(hint === undefined ? {} : { hint })}>
    {(control) => (
      <input
        {...input}
        {...control}
        name={name}
        defaultValue={value}
        autocomplete="off"
        onInput={({ currentTarget }) => onType?.(currentTarget.value)}
      />
    )}
  </LabelledControl>
)

/** An exact decimal: the gateway reads it to the nano-dollar. */
export const UsdField = (field: Labels & { readonly required?: boolean; readonly value?: string }) => (
  <TextField {...field} inputMode="decimal" pattern="-?\d+(\.\d{1,9})?" title="Amount in USD, at most 9 decimals" />
)

export const SelectField = ({
  hint,
  label,
  name,
  options,
  value
}: Labels & { readonly options: ReadonlyArray<readonly [value: string, text: string]>; readonly value?: string }) => (
  <LabelledControl name={name} label={label} {...(hint === undefined ? {} : { hint })}>
    {(control) => (
      <select {...control} name={name}>
        {options.map(([option, text]) => (
          <option key={option} value={option} selected={option === value}>
            {text}
          </option>
        ))}
      </select>
    )}
  </LabelledControl>
)

export const CheckField = ({
  checked,
  label,
  name,
  ...input
}: {
  readonly name: string
  readonly label: string
  readonly checked?: boolean
  readonly value?: string
  readonly required?: boolean
}) => (
  <label class="check">
    <input {...input} type="checkbox" name={name} defaultChecked={checked} /> {label}
  </label>
)

/** Returns undefined if the field is empty. */
export const textOf = (form: FormData, name: string): string | undefined => {
  const value = form.get(name)
  return typeof value === "string" && value.trim() !== "" ? value.trim() : undefined
}

export const numberOf = (form: FormData, name: string): number | undefined => {
  const text = textOf(form, name)
  return text === undefined ? undefined : Number(text)
}
