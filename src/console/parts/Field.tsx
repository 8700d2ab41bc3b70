import type { ComponentChildren } from "preact"
import { useContext, useId, useLayoutEffect } from "preact/hooks"
import { RefusedField } from "./Dialog.tsx"

interface Labels {
  readonly name: string
  readonly label: string
  readonly hint?: string
}

/** A labelled control of a form, with why the gateway refused its value. */
const Labelled = ({
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
  const refused = useContext(RefusedField)
  const problem = refused?.param === name ? refused.message : undefined
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
}) => (
  <Labelled name={name} label={label} {...(hint === undefined ? {} : { hint })}>
    {(control) => <input {...input} {...control} name={name} defaultValue={value} autocomplete="off" />}
  </Labelled>
)

/** An exact decimal, which the gateway reads to the nano-dollar. */
export const UsdField = (field: Labels & { readonly required?: boolean; readonly value?: string }) => (
  <TextField {...field} inputMode="decimal" pattern="-?\d+(\.\d{1,9})?" title="USD with at most 9 decimals" />
)

export const SelectField = ({
  hint,
  label,
  name,
  options,
  value
}: Labels & { readonly options: ReadonlyArray<readonly [value: string, text: string]>; readonly value?: string }) => (
  <Labelled name={name} label={label} {...(hint === undefined ? {} : { hint })}>
    {(control) => (
      <select {...control} name={name}>
        {options.map(([one, text]) => (
          <option key={one} value={one} selected={one === value}>
            {text}
          </option>
        ))}
      </select>
    )}
  </Labelled>
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
}) => (
  <label class="check">
    <input {...input} type="checkbox" name={name} defaultChecked={checked} /> {label}
  </label>
)

/** Undefined where nothing is entered. */
export const textOf = (form: FormData, name: string): string | undefined => {
  const value = form.get(name)
  return typeof value === "string" && value.trim() !== "" ? value.trim() : undefined
}

export const numberOf = (form: FormData, name: string): number | undefined => {
  const text = textOf(form, name)
  return text === undefined ? undefined : Number(text)
}
