import { Long } from "../../parts/Long.tsx"
import { Time } from "../../parts/Time.tsx"
import { Usd } from "../../parts/Usd.tsx"

/** A value of a record, read by its name. */
export const Value = ({ name, value }: { readonly name: string; readonly value: unknown }) => {
  if (value === null || value === undefined) return <span class="soft">none</span>
  if (typeof value === "boolean") return <>{value ? "yes" : "no"}</>
  if (typeof value === "number") {
    if (name.endsWith("_usd")) return <Usd amount={value} />
    return name === "at" || name.endsWith("_at") ? <Time at={value} /> : <>{value}</>
  }
  if (typeof value === "string") return value === "" ? <span class="soft">empty</span> : <Long text={value} />
  return <>{Array.isArray(value) ? value.join(", ") : JSON.stringify(value)}</>
}
