import type { consoleInputs } from "../../services/admin/ConsoleInputs.ts"
import type { InputDescription } from "../../services/resources/Input.ts"
import { partsOfUsd } from "../format/Amount.ts"
import { localMinuteOf } from "../format/Moment.ts"
import { CheckField, numberOf, SelectField, TextField, textOf, UsdField } from "./Field.tsx"
import type { Column } from "./Table.tsx"

declare const gatewayInputs: typeof consoleInputs

/** What operators write, as its definitions say; the build puts it here. */
export const inputs = gatewayInputs

/** What a text becomes in a field of one line. */
export const typedOf = (text: string): string => text.replace(/[\r\n]/g, "").trim()

/** For a field that holds an amount. */
const decimalOf = (usd: number): string => {
  const { fine, main } = partsOfUsd(usd)
  return `${usd < 0 ? "-" : ""}${main.replace(/[$,]/g, "")}${fine}`
}

/** By the name of the field; undefined where it is not sent. */
type Values = Readonly<Record<string, unknown>>
type Inputs = ReadonlyArray<InputDescription>

const minuteSeconds = 60

const isList = (value: unknown): value is ReadonlyArray<string> => Array.isArray(value)

/** As a form would enter it. */
const presentIn = ({ form: { kind }, needs }: InputDescription, value: unknown): unknown => {
  if (kind === "text") return typeof value === "string" ? typedOf(value) : ""
  if (value === null || value === undefined) return needs === undefined ? null : undefined
  if (kind === "usd" && typeof value === "number") return decimalOf(value)
  return kind === "time" && typeof value === "number" ? value - (value % minuteSeconds) : value
}

const enteredIn = ({ form: { kind, options = [] }, name, needs }: InputDescription, form: FormData): unknown => {
  if (needs !== undefined && textOf(form, needs) === undefined) return undefined
  const text = textOf(form, name)
  switch (kind) {
    case "text":
      return text ?? ""
    case "integer":
      return numberOf(form, name) ?? null
    case "time":
      return text === undefined ? null : Math.floor(Date.parse(text) / 1000)
    case "flag":
      return form.has(name)
    case "patterns":
      return text === undefined ? null : text.split(",").flatMap((one) => one.trim() || [])
    case "choices": {
      const chosen = options.filter((option) => form.getAll(name).includes(option))
      return chosen.length === options.length ? null : chosen
    }
    default:
      return text ?? null
  }
}

/** The values that a form changes; of a new record all that it has. */
export const changesIn = (inputs: Inputs, form: FormData, record: object = {}): Values => {
  const present = new Map(Object.entries(record))
  const changed = inputs.flatMap((input) => {
    const entered = enteredIn(input, form)
    const isSame = JSON.stringify(entered) === JSON.stringify(presentIn(input, present.get(input.name)))
    return isSame ? [] : [[input.name, entered]]
  })
  return Object.fromEntries(changed)
}

const textOfPresent = (input: InputDescription, value: unknown): string => {
  if (value === null || value === undefined) return ""
  return isList(value) ? value.join(", ") : String(presentIn(input, value))
}

const hintOf = (none: string | undefined) =>
  none === undefined ? {} : { hint: `${none.charAt(0).toUpperCase()}${none.slice(1)}, if left empty.` }

const InputField = ({ input, value }: { readonly input: InputDescription; readonly value: unknown }) => {
  const { form, isRequired = false, label, name, none, suggested } = input
  const options = form.options ?? []
  const field = { name, label, ...hintOf(none) }
  const text = textOfPresent(input, value)
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
      return <TextField {...field} inputMode="numeric" pattern="\d+" title="A whole number" value={text} />
    case "time":
      return (
        <TextField {...field} type="datetime-local" value={typeof value === "number" ? localMinuteOf(value) : ""} />
      )
    default:
      return <TextField {...field} value={text} required={isRequired} />
  }
}

/** A field that needs the one before it stands beside it. */
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

/** A column for each input that has one. */
export const inputColumns = <Row extends object>(inputs: Inputs): ReadonlyArray<Column<Row>> =>
  inputs.flatMap((input): ReadonlyArray<Column<Row>> => {
    const { column: title, form, name } = input
    if (title === undefined) return []
    if (form.kind === "usd" || form.kind === "time") {
      return [{ title, kind: form.kind, value: (row) => numberIn(row, name) }]
    }
    if (form.kind === "integer") return [{ title, kind: "number", value: (row) => numberIn(row, name) }]
    return [{ title, kind: "text", value: (row) => textIn(row, input) }]
  })
