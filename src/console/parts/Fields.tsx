import type { ComponentChildren } from "preact"
import { useContext, useId, useLayoutEffect, useState } from "preact/hooks"
import type { consoleInputs } from "../../services/admin/Organizations.ts"
import type { InputDescription } from "../../services/resources/ResourceInput.ts"
import { useCallableModels } from "../api/GatewayClient.ts"
import { formatUsd } from "../format/Amount.ts"
import { localMinuteOf } from "../format/Dates.ts"
import { InvalidField } from "./Dialog.tsx"
import type { Column } from "./Table.tsx"

interface Labels {
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

declare const gatewayInputs: typeof consoleInputs

/** The inputs of keys and organizations. The build inserts them here. */
export const inputs = gatewayInputs

/** Removes line breaks and outer spaces, as the browser does in a single-line field. */
export const toSingleLine = (text: string): string => text.replace(/[\r\n]/g, "").trim()

/** The value of an amount field. */
const toDecimal = (usd: number): string => formatUsd(usd).replace("−", "-").replace(/[$,]/g, "")

/** The values to send, by field name. JSON omits undefined ones. */
type Values = Readonly<Record<string, unknown>>
type Inputs = ReadonlyArray<InputDescription>

const minuteSeconds = 60

const isList = (value: unknown): value is ReadonlyArray<string> => Array.isArray(value)

/** Converts a value of a record to what the unchanged form would send. */
const toFormValue = ({ form: { kind }, needs }: InputDescription, value: unknown): unknown => {
  if (kind === "text") return typeof value === "string" ? toSingleLine(value) : ""
  if (value === null || value === undefined) return needs === undefined ? null : undefined
  if (kind === "usd" && typeof value === "number") return toDecimal(value)
  return kind === "time" && typeof value === "number" ? value - (value % minuteSeconds) : value
}

const readInput = ({ form: { kind, options = [] }, name, needs }: InputDescription, form: FormData): unknown => {
  if (needs !== undefined && textOf(form, needs) === undefined) return undefined
  const text = textOf(form, name)
  switch (kind) {
    case "text":
      return text ?? ""
    case "integer":
      return numberOf(form, name) ?? null
    case "percent":
      return numberOf(form, name) ?? 0
    case "time":
      return text === undefined ? null : Math.floor(Date.parse(text) / 1000)
    case "flag":
      return form.has(name)
    case "patterns":
      return text === undefined ? null : text.split(",").flatMap((pattern) => pattern.trim() || [])
    case "choices": {
      const chosen = options.filter((option) => form.getAll(name).includes(option))
      return chosen.length === options.length ? null : chosen
    }
    default:
      return text ?? null
  }
}

/** Returns the changed values, or all values of a new record. */
export const changesIn = (inputs: Inputs, form: FormData, record: object = {}): Values => {
  const present = new Map(Object.entries(record))
  const changed = inputs.flatMap((input) => {
    const entered = readInput(input, form)
    const isSame = JSON.stringify(entered) === JSON.stringify(toFormValue(input, present.get(input.name)))
    return isSame ? [] : [[input.name, entered]]
  })
  return Object.fromEntries(changed)
}

const toFieldText = (input: InputDescription, value: unknown): string => {
  if (value === null || value === undefined) return ""
  return isList(value) ? value.join(", ") : String(toFormValue(input, value))
}

const hintOf = (none: string | undefined): { readonly hint?: string } =>
  none === undefined ? {} : { hint: `Default: ${none}.` }

/** Returns texts that complete the last of the typed ids, and texts that add one after it. */
const suggestModels = (typed: string, ids: ReadonlyArray<string>) => {
  const [before = ""] = /^(?:.*,\s*)?/.exec(typed) ?? []
  const entered = typed.split(",").map((id) => id.trim())
  const others = ids.filter((id) => !entered.includes(id))
  const starts = ids.includes(entered.at(-1) ?? "") ? [before, `${typed.trimEnd()}, `] : [before]
  return starts.flatMap((start) => others.map((id) => ({ id, text: start + id })))
}

/** Ids of models and patterns, separated by commas. Suggests the models that can be called. */
const ModelsField = ({ text, ...field }: Labels & { readonly text: string }) => {
  const [typed, setTyped] = useState(text)
  const list = useId()
  const ids = useCallableModels().map(({ id }) => id)
  return (
    <>
      <TextField {...field} value={text} list={list} onType={setTyped} />
      <datalist id={list}>
        {suggestModels(typed, ids).map(({ id, text }) => (
          <option key={text} value={text} label={id} />
        ))}
      </datalist>
    </>
  )
}

const InputField = ({ input, value }: { readonly input: InputDescription; readonly value: unknown }) => {
  const { form, isRequired = false, label, name, none, suggested } = input
  const options = form.options ?? []
  const field = { name, label, ...hintOf(none) }
  const text = toFieldText(input, value)
  switch (form.kind) {
    case "choices":
      return (
        <fieldset class="checks">
          <legend>{label}</legend>
          {options.map((option) => (
            <CheckField
              key={option}
              name={name}
              label={option}
              value={option}
              checked={!isList(value) || value.includes(option)}
            />
          ))}
        </fieldset>
      )
    case "flag":
      return <CheckField name={name} label={label} checked={value === true} />
    case "choice":
      return (
        <SelectField
          {...field}
          options={options.map((option) => [option, option] as const)}
          value={text || (suggested ?? "")}
        />
      )
    case "usd":
      return <UsdField {...field} value={text} />
    case "integer":
      return <TextField {...field} inputMode="numeric" pattern="\d+" title="Enter a whole number" value={text} />
    case "percent":
      return (
        <TextField
          {...field}
          inputMode="decimal"
          pattern="-?\d+(\.\d{1,2})?"
          title="Enter a percentage such as 12.5"
          value={text || "0"}
        />
      )
    case "time":
      return (
        <TextField {...field} type="datetime-local" value={typeof value === "number" ? localMinuteOf(value) : ""} />
      )
    case "patterns":
      return (
        <ModelsField
          {...field}
          hint={`Ids or patterns such as claude-*, separated by commas. ${field.hint ?? ""}`}
          text={text}
        />
      )
    default:
      return <TextField {...field} value={text} required={isRequired} />
  }
}

/** Groups each field with the next one if that depends on it. */
const groupsOf = (inputs: Inputs): ReadonlyArray<Inputs> =>
  inputs.flatMap((input, index) => {
    if (input.needs !== undefined) return []
    const next = inputs[index + 1]
    return [next?.needs === input.name ? [input, next] : [input]]
  })

export const InputFields = ({ inputs, record = {} }: { readonly inputs: Inputs; readonly record?: object }) => {
  const present = new Map(Object.entries(record))
  const fieldOf = (input: InputDescription) => (
    <InputField key={input.name} input={input} value={present.get(input.name)} />
  )
  return (
    <>
      {groupsOf(inputs).map((group) =>
        group.length === 1 ? (
          group.map(fieldOf)
        ) : (
          <div key={group[0]?.name} class="pair">
            {group.map(fieldOf)}
          </div>
        )
      )}
    </>
  )
}

const numberIn = (row: object, name: string): number | null => {
  const value = new Map(Object.entries(row)).get(name)
  return typeof value === "number" ? value : null
}

const textIn = (row: object, { name, none }: InputDescription): string | null => {
  const value = new Map(Object.entries(row)).get(name)
  if (value === null || value === undefined) return none ?? null
  return isList(value) ? value.join(", ") : String(value)
}

/** Returns the columns of inputs that have one. */
export const inputColumns = <Row extends object>(inputs: Inputs): ReadonlyArray<Column<Row>> =>
  inputs.flatMap((input): ReadonlyArray<Column<Row>> => {
    const { column: title, form, name } = input
    if (title === undefined) return []
    if (form.kind === "usd" || form.kind === "time") {
      return [{ title, kind: form.kind, isLabelled: true, value: (row) => numberIn(row, name) }]
    }
    if (form.kind === "integer" || form.kind === "percent")
      return [{ title, kind: "number", value: (row) => numberIn(row, name) }]
    return [{ title, kind: "text", isLabelled: true, value: (row) => textIn(row, input) }]
  })
