import { useEffect, useId, useState } from "preact/hooks"
import { Dialog } from "../parts/Dialog.tsx"
import { ErrorBox } from "../parts/Feedback.tsx"
import type { Match } from "./useSearch.ts"
import { useSearch } from "./useSearch.ts"

const steps: Readonly<Record<string, number>> = { ArrowDown: 1, ArrowUp: -1 }

/** A combobox of everything that has a page; Enter opens, as soon as something matches. */
export const SearchDialog = ({ close }: { readonly close: () => void }) => {
  const [text, setText] = useState("")
  const [active, setActive] = useState(0)
  const [isEntered, setEntered] = useState(false)
  const { error, isPending, matches } = useSearch(text.trim())
  const id = useId()
  const optionId = (index: number) => `${id}-${index}`
  const shown = matches[active] === undefined ? 0 : active

  const open = (match: Match) => {
    close()
    location.hash = match.href
  }
  useEffect(() => {
    const [first] = matches
    if (isEntered && first !== undefined) open(first)
  })
  useEffect(() => document.getElementById(optionId(shown))?.scrollIntoView({ block: "nearest" }), [shown])

  const type = (next: string) => {
    setText(next)
    setActive(0)
    setEntered(false)
  }
  const press = (event: KeyboardEvent) => {
    if (event.isComposing) return
    const step = steps[event.key]
    const match = matches[shown]
    if (event.key === "Enter") {
      // It would press the button that has the focus again.
      event.preventDefault()
      if (match !== undefined) open(match)
      else setEntered(isPending)
    }
    if (step === undefined) return
    event.preventDefault()
    setActive((shown + step + matches.length) % Math.max(1, matches.length))
  }
  const none = error === undefined ? "Nothing matches." : ""
  const status = isPending ? "Searching…" : matches.length === 0 ? none : `${matches.length} found`
  return (
    <Dialog title="Search" onClose={close}>
      <input
        role="combobox"
        aria-label="A view, an id, or a part of a name"
        aria-expanded={matches.length > 0}
        aria-controls={id}
        aria-autocomplete="list"
        aria-activedescendant={matches.length === 0 ? undefined : optionId(shown)}
        placeholder="A view, an id, or a part of a name"
        autocomplete="off"
        spellcheck={false}
        maxLength={200}
        value={text}
        onInput={({ currentTarget }) => type(currentTarget.value)}
        onKeyDown={press}
      />
      {error && <ErrorBox error={error} />}
      <div id={id} role="listbox" aria-label="Matches">
        {[...new Set(matches.map(({ kind }) => kind))].map((kind) => (
          <div key={kind} role="group" aria-label={kind}>
            <small aria-hidden="true">{kind}</small>
            {matches.map(
              (match, index) =>
                match.kind === kind && (
                  <div
                    key={match.id}
                    id={optionId(index)}
                    role="option"
                    aria-selected={index === shown}
                    onPointerMove={() => setActive(index)}
                    onMouseDown={(event) => event.preventDefault()}
                    onClick={() => open(match)}
                  >
                    <bdi>{match.text}</bdi>
                    <span class="soft">
                      {match.details.map((detail, place) => (
                        <>
                          {place > 0 && ", "}
                          <bdi>{detail}</bdi>
                        </>
                      ))}
                    </span>
                  </div>
                )
            )}
          </div>
        ))}
      </div>
      <p class="soft" role="status">
        {status}
      </p>
    </Dialog>
  )
}
