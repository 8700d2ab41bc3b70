import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks"
import { isCalendarWord } from "../../domain/Calendar.ts"
import { replaceQuery, useRoute } from "../CurrentRoute.ts"
import { localMinuteOf, parseMoment, utcMinuteOf } from "../format/Moment.ts"
import { useVisible } from "../Session.ts"

/** Members have no filters that are internal. */
export type Filter = { readonly isInternal?: boolean } & FilterKind

type FilterKind =
  | { readonly kind: "text"; readonly name: string; readonly label: string; readonly placeholder?: string }
  | {
      readonly kind: "select"
      readonly name: string
      readonly label: string
      readonly options: ReadonlyArray<string | readonly [value: string, text: string]>
      /** What no choice is called. */
      readonly none?: string
    }
  /** The query's `since` and `until`; read them with `useRange`. */
  | {
      readonly kind: "range"
      /** The span where none is chosen. */
      readonly fallback?: string
    }

/** Typing waits this long for the next key. */
const typingMillis = 300

const TextFilter = ({
  label,
  name,
  placeholder = "",
  value
}: Extract<Filter, { kind: "text" }> & { readonly value: string }) => {
  const [text, setText] = useState(value)
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined)
  useLayoutEffect(() => {
    // What is being typed is newer than the address.
    if (timer.current === undefined && value !== text.trim()) setText(value)
  }, [value])
  // In the layout, since an effect after the paint may not have begun when a field that was typed into goes.
  useLayoutEffect(() => () => clearTimeout(timer.current), [])
  const type = (next: string) => {
    setText(next)
    clearTimeout(timer.current)
    timer.current = setTimeout(() => {
      timer.current = undefined
      replaceQuery({ [name]: next.trim() })
    }, typingMillis)
  }
  return (
    <label class="filter">
      <span>{label}</span>
      <input
        type="search"
        data-filter
        value={text}
        placeholder={placeholder}
        onInput={({ currentTarget }) => type(currentTarget.value)}
      />
    </label>
  )
}

const SelectFilter = ({
  label,
  name,
  none = "all",
  options,
  value
}: Extract<Filter, { kind: "select" }> & { readonly value: string }) => {
  const known = options.map((option) => (typeof option === "string" ? ([option, option] as const) : option))
  const isKnown = value === "" || known.some(([one]) => one === value)
  return (
    <label class="filter">
      <span>{label}</span>
      <select data-filter value={value} onChange={({ currentTarget }) => replaceQuery({ [name]: currentTarget.value })}>
        <option value="">{none}</option>
        {[...known, ...(isKnown ? [] : [[value, value] as const])].map(([one, text]) => (
          <option key={one} value={one}>
            {text}
          </option>
        ))}
      </select>
    </label>
  )
}

interface Preset {
  readonly since: string
  readonly until?: string
  readonly text: string
}

const presets: ReadonlyArray<Preset> = [
  { since: "all", text: "any time" },
  { since: "1h", text: "last hour" },
  { since: "24h", text: "last 24 hours" },
  { since: "today", text: "today UTC" },
  { since: "yesterday", until: "today", text: "yesterday UTC" },
  { since: "7d", text: "last 7 days" },
  { since: "30d", text: "last 30 days" },
  { since: "this-month", text: "this month UTC" },
  { since: "last-month", until: "this-month", text: "last month UTC" }
]

const Moment = ({ label, name, value }: { readonly label: string; readonly name: string; readonly value: string }) => {
  const at = parseMoment(value, Date.now() / 1000)
  return (
    <label class="filter">
      <span>{label}</span>
      <input
        type="datetime-local"
        value={at === undefined ? "" : localMinuteOf(at)}
        onChange={({ currentTarget }) => {
          const chosen = parseMoment(currentTarget.value, 0)
          replaceQuery({ [name]: chosen === undefined ? "" : utcMinuteOf(chosen) })
        }}
      />
    </label>
  )
}

/** Of what the address says, what an input of a date and time can show. */
const shownIn = (value: string): string => (/^\d{4}-/.test(value) || isCalendarWord(value) ? value : "")

const RangeFilter = ({
  fallback = "all",
  since,
  until
}: {
  readonly fallback?: string | undefined
  readonly since: string
  readonly until: string
}) => {
  const preset = presets.find((one) => one.since === (since || fallback) && (one.until ?? "") === until)
  const [isCustom, setCustom] = useState(preset === undefined)
  const choose = (value: string) => {
    const chosen = presets.find((one) => one.since === value)
    setCustom(chosen === undefined)
    replaceQuery({ since: value === fallback ? "" : chosen?.since, until: chosen?.until })
  }
  const isOpen = isCustom || preset === undefined
  return (
    <>
      <label class="filter">
        <span>Time</span>
        <select
          data-filter
          value={isOpen ? "custom" : preset.since}
          onChange={({ currentTarget }) => choose(currentTarget.value)}
        >
          {presets.map(({ since: value, text }) => (
            <option key={value} value={value}>
              {text}
            </option>
          ))}
          <option value="custom">from … to …</option>
        </select>
      </label>
      {isOpen && (
        <>
          <Moment label="From" name="since" value={shownIn(since)} />
          <Moment label="To" name="until" value={shownIn(until)} />
        </>
      )}
    </>
  )
}

/** The chosen time in Unix seconds; `24h` stays the same until another is chosen, `today` until midnight. */
export const useRange = (fallback = ""): { readonly since: number | undefined; readonly until: number | undefined } => {
  const { since = fallback, until = "" } = useRoute().query
  const now = Date.now() / 1000
  const chosenAt = useMemo(() => now, [since, until])
  const read = (text: string) => parseMoment(text, isCalendarWord(text) ? now : chosenAt)
  return { since: read(since), until: read(until) }
}

/** What the filters ask the gateway for. */
export const useFilters = (filters: ReadonlyArray<Filter>): Readonly<Record<string, string | number | undefined>> => {
  const { query } = useRoute()
  const range = useRange()
  return Object.fromEntries(
    filters.flatMap(
      (filter): ReadonlyArray<readonly [string, string | number | undefined]> =>
        filter.kind === "range" ? Object.entries(range) : [[filter.name, query[filter.name]]]
    )
  )
}

/** Filters that live in the address, so that a link reproduces the view. */
export const FilterBar = ({ filters }: { readonly filters: ReadonlyArray<Filter> }) => {
  const { query } = useRoute()
  const visible = useVisible(filters)
  const [clears, setClears] = useState(0)
  const clear = () => {
    // New fields, for what was typed in the old ones is not applied any more.
    setClears(clears + 1)
    replaceQuery(Object.fromEntries(Object.keys(query).map((name) => [name, ""])))
  }
  return (
    <div key={clears} class="filters" role="search" aria-label="Filters">
      {visible.map((filter) => {
        if (filter.kind === "range")
          return (
            <RangeFilter
              key="range"
              fallback={filter.fallback}
              since={query["since"] ?? ""}
              until={query["until"] ?? ""}
            />
          )
        const value = query[filter.name] ?? ""
        return filter.kind === "text" ? (
          <TextFilter key={filter.name} {...filter} value={value} />
        ) : (
          <SelectFilter key={filter.name} {...filter} value={value} />
        )
      })}
      {Object.keys(query).length > 0 && (
        <button class="plain" onClick={clear}>
          Clear
        </button>
      )}
    </div>
  )
}
