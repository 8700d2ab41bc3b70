import { useId, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks"
import { isCalendarWord } from "../../domain/Moment.ts"
import type { QueryValues } from "../api/ApiClient.ts"
import { useResource } from "../api/useResource.ts"
import { replaceQuery, useRoute } from "../BrowserState.ts"
import { localMinuteOf, parseMoment, utcMinuteOf } from "../format/Dates.ts"
import { useVisible } from "../SignedIn.ts"

/** Members see no internal filters. A pinned filter is always visible, others only if they are set. */
export type Filter = { readonly isInternal?: boolean; readonly isPinned?: boolean } & FilterKind

interface TextFilterOptions {
  readonly kind: "text"
  readonly name: string
  readonly label: string
  readonly placeholder?: string
  /** The kind of records to suggest, by default that of the filter's name. */
  readonly suggest?: Suggested
}

interface SelectFilterOptions {
  readonly kind: "select"
  readonly name: string
  readonly label: string
  readonly options: ReadonlyArray<string | readonly [value: string, text: string]>
  /** The text of the empty choice. */
  readonly none?: string
}

type FilterKind =
  | TextFilterOptions
  | SelectFilterOptions
  /** Sets `since` and `until` in the query. `useRange` reads them. */
  | {
      readonly kind: "range"
      /** The span if none is chosen. */
      readonly fallback?: string
    }

const isNamed = (filter: Filter): filter is Exclude<Filter, { kind: "range" }> => filter.kind !== "range"

type Suggestion = readonly [value: string, label: string | undefined]

type Row = Readonly<Record<string, unknown>>

interface SuggestionSource {
  readonly path: string
  readonly query: (text: string) => QueryValues
  readonly suggestion: (row: Row) => Suggestion
}

const textIn = (row: Row, name: string): string => {
  const value = row[name]
  return typeof value === "string" ? value : ""
}

/** The values that the requests of the last 30 days have, most frequent first. */
const usedValues = (by: string): SuggestionSource => ({
  path: "/usage",
  query: () => ({ by, since: "30d", sort: "requests", limit: 100 }),
  suggestion: (row) => [textIn(row, by), undefined]
})

const foundRecords = (path: string, suggestion: SuggestionSource["suggestion"]): SuggestionSource => ({
  path,
  query: (search) => ({ search, limit: 20 }),
  suggestion
})

const sources = {
  model: usedValues("model"),
  tag: usedValues("tag"),
  route: { path: "/routes", query: () => ({}), suggestion: (row) => [textIn(row, "id"), undefined] },
  organization: foundRecords("/organizations", (row) => [textIn(row, "name"), undefined]),
  key: foundRecords("/keys", (row) => [textIn(row, "id"), textIn(row, "name")])
} satisfies Readonly<Record<string, SuggestionSource>>

type Suggested = keyof typeof sources

const sourceOf = (name: string): SuggestionSource | undefined =>
  Object.entries<SuggestionSource>(sources).find(([suggested]) => suggested === name)?.[1]

/** Loads suggestions while the field has the focus. */
const Suggestions = ({
  id,
  source,
  text
}: {
  readonly id: string
  readonly source: SuggestionSource
  text: string
}) => {
  const { data } = useResource<{ readonly data: ReadonlyArray<Row> }>(source.path, { query: source.query(text) })
  return (
    <datalist id={id}>
      {data?.data
        .map(source.suggestion)
        .filter(([value]) => value !== "")
        .map(([value, label]) => (
          <option key={value} value={value} label={label} />
        ))}
    </datalist>
  )
}

/** The delay between the last keystroke and the change of the list. */
const typingMillis = 300

interface ControlProps {
  readonly value: string
  /** The control of a filter that was just added gets the focus. */
  readonly hasFocus: boolean
  /** A filter without a value stays while its control has the focus. */
  readonly onEnter: () => void
  readonly onLeave: () => void
}

/** A dialog returns the focus to the control when it closes. */
const isInDialog = (): boolean => document.querySelector("dialog[open]") !== null

const useInitialFocus = <E extends HTMLElement>(hasFocus: boolean) => {
  const control = useRef<E>(null)
  useLayoutEffect(() => {
    if (hasFocus) control.current?.focus()
  }, [])
  return control
}

const TextControl = ({
  hasFocus,
  name,
  onEnter,
  onLeave,
  placeholder = "",
  suggest,
  value
}: TextFilterOptions & ControlProps) => {
  const [text, setText] = useState(value)
  const [isFocused, setFocused] = useState(false)
  const control = useInitialFocus<HTMLInputElement>(hasFocus)
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined)
  const id = useId()
  const source = sourceOf(suggest ?? name)
  useLayoutEffect(() => {
    // While the timer runs, the typed text is newer than the address.
    if (timer.current === undefined && value !== text.trim()) setText(value)
  }, [value])
  // A layout effect, because a field may unmount before its effects after the paint have run.
  useLayoutEffect(
    () => () => {
      clearTimeout(timer.current)
      timer.current = undefined
    },
    []
  )
  const apply = (next: string) => {
    timer.current = undefined
    replaceQuery({ [name]: next.trim() })
  }
  const type = (next: string) => {
    setText(next)
    clearTimeout(timer.current)
    timer.current = setTimeout(() => apply(next), typingMillis)
  }
  const leave = () => {
    setFocused(false)
    if (timer.current !== undefined) {
      clearTimeout(timer.current)
      apply(text)
    }
    if (!isInDialog()) onLeave()
  }
  return (
    <>
      <input
        ref={control}
        type="search"
        data-filter
        value={text}
        placeholder={placeholder}
        list={source && id}
        autocomplete="off"
        onFocus={() => {
          setFocused(true)
          onEnter()
        }}
        onBlur={leave}
        onInput={({ currentTarget }) => type(currentTarget.value)}
      />
      {source && isFocused && <Suggestions id={id} source={source} text={value} />}
    </>
  )
}

const SelectControl = ({
  hasFocus,
  name,
  none = "All",
  onEnter,
  onLeave,
  options,
  value
}: SelectFilterOptions & ControlProps) => {
  const control = useInitialFocus<HTMLSelectElement>(hasFocus)
  const choices = options.map((option) => (typeof option === "string" ? ([option, option] as const) : option))
  const isKnown = value === "" || choices.some(([choice]) => choice === value)
  return (
    <select
      ref={control}
      data-filter
      value={value}
      onFocus={onEnter}
      onBlur={() => isInDialog() || onLeave()}
      onChange={({ currentTarget }) => replaceQuery({ [name]: currentTarget.value })}
    >
      <option value="">{none}</option>
      {[...choices, ...(isKnown ? [] : [[value, value] as const])].map(([choice, text]) => (
        <option key={choice} value={choice}>
          {text}
        </option>
      ))}
    </select>
  )
}

const Pill = ({
  filter,
  onRemove,
  ...control
}: ControlProps & {
  readonly filter: TextFilterOptions | SelectFilterOptions
  /** Undefined if the filter is pinned. */
  readonly onRemove: (() => void) | undefined
}) => (
  <div class="pill">
    <label>
      <span>{filter.label}</span>
      {filter.kind === "text" ? <TextControl {...filter} {...control} /> : <SelectControl {...filter} {...control} />}
    </label>
    {onRemove && (
      <button
        class="plain close"
        aria-label={`Remove filter ${filter.label}`}
        onMouseDown={keepFocus}
        onClick={onRemove}
      >
        ×
      </button>
    )}
  </div>
)

/**
 * Keeps the focus in a control until the click. Otherwise a filter without a value would disappear between press and
 * release, and the button would move away from the pointer.
 */
const keepFocus = (event: MouseEvent) => event.preventDefault()

const steps: Readonly<Record<string, number>> = { ArrowDown: 1, ArrowUp: -1 }

/** A button with a menu of the filters that are not set. Typing a letter moves to the next filter that begins with it. */
const AddFilter = ({
  choose,
  filters
}: {
  readonly filters: ReadonlyArray<TextFilterOptions | SelectFilterOptions>
  readonly choose: (name: string) => void
}) => {
  const [isOpen, setOpen] = useState(false)
  const button = useRef<HTMLButtonElement>(null)
  const menu = useRef<HTMLDivElement>(null)
  const itemsOf = () => [...(menu.current?.querySelectorAll("button") ?? [])]
  useLayoutEffect(() => {
    if (isOpen) itemsOf()[0]?.focus()
  }, [isOpen])
  const handleKey = (event: KeyboardEvent) => {
    const items = itemsOf()
    const at = items.findIndex((item) => item === document.activeElement)
    const following = [...items.slice(at + 1), ...items.slice(0, at + 1)]
    const step = steps[event.key]
    if (event.key === "Escape") button.current?.focus()
    if (event.key === "Escape" || event.key === "Tab") setOpen(false)
    if (step !== undefined) {
      event.preventDefault()
      items[(at + step + items.length) % items.length]?.focus()
    }
    if (event.ctrlKey || event.metaKey || event.altKey || event.key.length > 1 || event.key === " ") return
    // A letter must not be a shortcut of the page.
    event.stopPropagation()
    following.find((item) => item.textContent.toLowerCase().startsWith(event.key.toLowerCase()))?.focus()
  }
  return (
    <div
      class="add-filter"
      onFocusOut={({ currentTarget, relatedTarget }) => {
        if (!(relatedTarget instanceof Node && currentTarget.contains(relatedTarget))) setOpen(false)
      }}
    >
      <button
        ref={button}
        data-filter
        data-add-filter
        aria-haspopup="menu"
        aria-expanded={isOpen}
        onMouseDown={keepFocus}
        onClick={() => setOpen(!isOpen)}
      >
        + Filter
      </button>
      {isOpen && (
        <div ref={menu} role="menu" aria-label="Filters" onKeyDown={handleKey}>
          {filters.map(({ label, name }) => (
            <button key={name} role="menuitem" tabIndex={-1} onClick={() => choose(name)}>
              {label}
            </button>
          ))}
        </div>
      )}
    </div>
  )
}

interface Preset {
  readonly since: string
  readonly until?: string
  readonly text: string
}

const presets: ReadonlyArray<Preset> = [
  { since: "all", text: "Any time" },
  { since: "1h", text: "Last hour" },
  { since: "24h", text: "Last 24 hours" },
  { since: "today", text: "Today (UTC)" },
  { since: "yesterday", until: "today", text: "Yesterday (UTC)" },
  { since: "7d", text: "Last 7 days" },
  { since: "30d", text: "Last 30 days" },
  { since: "this-month", text: "This month (UTC)" },
  { since: "last-month", until: "this-month", text: "Last month (UTC)" }
]

const Moment = ({ label, name, value }: { readonly label: string; readonly name: string; readonly value: string }) => {
  const at = parseMoment(value, Date.now() / 1000)
  return (
    <label class="pill">
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

/** A duration such as `24h` has no fixed time for the input to show. */
const fixedTimeIn = (value: string): string => (/^\d{4}-/.test(value) || isCalendarWord(value) ? value : "")

const RangeFilter = ({
  fallback = "all",
  since,
  until
}: {
  readonly fallback?: string | undefined
  readonly since: string
  readonly until: string
}) => {
  const preset = presets.find(
    (candidate) => candidate.since === (since || fallback) && (candidate.until ?? "") === until
  )
  const [isCustom, setCustom] = useState(preset === undefined)
  const choose = (value: string) => {
    const choice = presets.find((candidate) => candidate.since === value)
    setCustom(choice === undefined)
    replaceQuery({ since: value === fallback ? "" : choice?.since, until: choice?.until })
  }
  const isOpen = isCustom || preset === undefined
  return (
    <>
      <label class="pill">
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
          <option value="custom">Custom range</option>
        </select>
      </label>
      {isOpen && (
        <>
          <Moment label="From" name="since" value={fixedTimeIn(since)} />
          <Moment label="To" name="until" value={fixedTimeIn(until)} />
        </>
      )}
    </>
  )
}

/** Returns the range in Unix seconds. `24h` counts from when it was chosen, `today` changes at midnight. */
export const useRange = (fallback = ""): { readonly since: number | undefined; readonly until: number | undefined } => {
  const { since = fallback, until = "" } = useRoute().query
  const now = Date.now() / 1000
  const chosenAt = useMemo(() => now, [since, until])
  const parse = (text: string) => parseMoment(text, isCalendarWord(text) ? now : chosenAt)
  return { since: parse(since), until: parse(until) }
}

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

/** The pills of the set and pinned filters, and a menu of the others. */
const Filters = ({ clear, filters }: { readonly filters: ReadonlyArray<Filter>; readonly clear: () => void }) => {
  const { query } = useRoute()
  /** The filter that was added, or whose control has the focus. It is visible even without a value. */
  const [active, setActive] = useState<string>()
  const named = filters.filter(isNamed)
  const valueOf = (name: string) => query[name] ?? ""
  const isPinned = (filter: Filter) => filter.isPinned === true || named.length === 1
  const isShown = (filter: (typeof named)[number]) =>
    isPinned(filter) || valueOf(filter.name) !== "" || active === filter.name
  const rest = named.filter((filter) => !isShown(filter))
  const range = filters.find((filter) => filter.kind === "range")
  const remove = (name: string) => {
    setActive(undefined)
    replaceQuery({ [name]: "" })
    document.querySelector<HTMLElement>("[data-add-filter]")?.focus()
  }
  return (
    <div class="filters" role="search" aria-label="Filters">
      {range && <RangeFilter fallback={range.fallback} since={query["since"] ?? ""} until={query["until"] ?? ""} />}
      {named.filter(isShown).map((filter) => (
        <Pill
          key={filter.name}
          filter={filter}
          value={valueOf(filter.name)}
          hasFocus={active === filter.name}
          onEnter={() => setActive(filter.name)}
          onLeave={() => setActive((name) => (name === filter.name ? undefined : name))}
          onRemove={isPinned(filter) ? undefined : () => remove(filter.name)}
        />
      ))}
      {rest.length > 0 && <AddFilter filters={rest} choose={setActive} />}
      {Object.keys(query).length > 0 && (
        <button class="plain" onMouseDown={keepFocus} onClick={clear}>
          Clear filters
        </button>
      )}
    </div>
  )
}

/** Filters are stored in the address, so a link reproduces the view. */
export const FilterBar = ({ filters }: { readonly filters: ReadonlyArray<Filter> }) => {
  const { query } = useRoute()
  const visible = useVisible(filters)
  const [clears, setClears] = useState(0)
  const clear = () => {
    // A new key replaces the fields, which discards text that is not applied yet.
    setClears(clears + 1)
    replaceQuery(Object.fromEntries(Object.keys(query).map((name) => [name, ""])))
  }
  return <Filters key={clears} filters={visible} clear={clear} />
}
