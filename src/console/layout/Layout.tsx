import type { ComponentChildren } from "preact"
import { useEffect, useRef, useState } from "preact/hooks"
import type { ApiError } from "../api/ApiError.ts"
import { useRoute } from "../CurrentRoute.ts"
import { Dialog } from "../parts/Dialog.tsx"
import { ErrorBox } from "../parts/Feedback.tsx"
import { shorten } from "../parts/Values.tsx"
import { link } from "../Route.ts"
import { type Session, signIn, signOut } from "../Session.ts"
import { SearchDialog } from "../search/Search.tsx"
import { setTheme, themes, useTheme } from "../Theme.ts"
import { useViews } from "../views.ts"

const isTyping = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement && (target.isContentEditable || target.matches("input, select, textarea"))

/** Time to press the second key after `g`. */
const chordMillis = 1500

type Opened = "search" | "shortcuts"

const opens: Readonly<Record<string, Opened>> = { "/": "search", "?": "shortcuts" }

const isSearch = ({ altKey, ctrlKey, key, metaKey, shiftKey }: KeyboardEvent): boolean =>
  (ctrlKey || metaKey) && !altKey && !shiftKey && key.toLowerCase() === "k"

/** Returns which dialog the keys have opened, and how to open or close one. */
const useShortcuts = () => {
  const [opened, open] = useState<Opened>()
  const views = useViews()
  useEffect(() => {
    let chordUntil = 0
    const press = (event: KeyboardEvent) => {
      const { key, target } = event
      if (isSearch(event)) event.preventDefault()
      if (key === "Escape" && target instanceof HTMLElement && isTyping(target)) target.blur()
      if (document.querySelector("dialog[open]") !== null) return
      if (isSearch(event)) open("search")
      if (event.ctrlKey || event.metaKey || event.altKey || isTyping(target)) return
      const isChord = performance.now() < chordUntil
      const view = views.find((one) => one.key === key)
      chordUntil = key === "g" ? performance.now() + chordMillis : 0
      if (isChord && view !== undefined) location.hash = link([view.path])
      if (key === "/" || key === "f") event.preventDefault()
      if (opens[key] !== undefined) open(opens[key])
      if (key === "f") document.querySelector<HTMLElement>("[data-filter]")?.focus()
    }
    addEventListener("keydown", press)
    return () => removeEventListener("keydown", press)
  }, [views])
  return { opened, open, close: () => open(undefined) } as const
}

export const SignIn = ({ error }: { readonly error: ApiError | undefined }) => {
  const [token, setToken] = useState("")
  const [isBusy, setBusy] = useState(false)
  const submit = (event: Event) => {
    event.preventDefault()
    setBusy(true)
    void signIn({ token: token.trim() }).then(() => setBusy(false))
  }
  return (
    <main class="sign-in">
      <form onSubmit={submit}>
        <h1>Gateway console</h1>
        {error && <ErrorBox error={error} />}
        <label class="field">
          <span>Operator's token</span>
          <input
            type="password"
            autocomplete="current-password"
            required
            value={token}
            onInput={({ currentTarget }) => setToken(currentTarget.value)}
          />
        </label>
        <button class="primary" disabled={isBusy}>
          Sign in
        </button>
        <p class="soft">
          An operator's token, or a link that signs you in once, comes from <code>gateway operators create</code>;
          customers get theirs from who runs this gateway.
        </p>
      </form>
    </main>
  )
}

const Navigation = () => {
  const { path } = useRoute()
  const [first = ""] = path
  const list = useRef<HTMLElement>(null)
  useEffect(() => {
    const current = list.current?.querySelector<HTMLElement>("[aria-current]")
    list.current?.scrollTo({ left: (current?.offsetLeft ?? 0) - list.current.clientWidth / 2 })
  }, [first])
  return (
    <nav ref={list} aria-label="Views">
      {useViews().map((view) => (
        <a key={view.path} href={link([view.path])} aria-current={first === view.path ? "page" : undefined}>
          {view.title}
        </a>
      ))}
    </nav>
  )
}

const ThemeSwitch = () => {
  const theme = useTheme()
  return (
    <fieldset class="switch">
      <legend>Theme</legend>
      {themes.map((one) => (
        <label key={one}>
          <input type="radio" name="theme" checked={theme === one} onChange={() => setTheme(one)} />
          <span>{one}</span>
        </label>
      ))}
    </fieldset>
  )
}

const longestName = 60

/** Whose member has signed in. */
const Organization = ({ name }: { readonly name: string }) => (
  <strong class="organization" title={name.length > longestName ? name : undefined}>
    <bdi>{shorten(name, longestName)}</bdi>
  </strong>
)

const ownShortcuts = [
  ["/", "search"],
  ["Ctrl K", "search, from a field too"],
  ["f", "to the filter"],
  ["Esc", "close, leave a field"],
  ["?", "this list"]
]

const ShortcutList = ({ close }: { readonly close: () => void }) => (
  <Dialog title="Shortcuts" onClose={close}>
    <dl class="facts">
      {[...useViews().map(({ key, title }) => [`g ${key}`, title]), ...ownShortcuts].map(([keys = "", meaning]) => (
        <div key={keys}>
          <dt>
            {keys.split(" ").map((key) => (
              <kbd key={key}>{key}</kbd>
            ))}
          </dt>
          <dd>{meaning}</dd>
        </div>
      ))}
    </dl>
  </Dialog>
)

const skip = (event: Event) => {
  event.preventDefault()
  document.querySelector<HTMLElement>("main")?.focus()
}

export const Layout = ({ children, session }: { readonly session: Session; readonly children: ComponentChildren }) => {
  const { close, open, opened } = useShortcuts()
  const { operator, organization, sandbox, version } = session
  return (
    <div class="layout">
      <a class="skip" href="#content" onClick={skip}>
        Skip to the content
      </a>
      <header class="side">
        <strong class="brand">Gateway{sandbox && <span class="badge warn">sandbox</span>}</strong>
        <button class="search" aria-keyshortcuts="/ Control+K Meta+K" onClick={() => open("search")}>
          Search <kbd aria-hidden="true">/</kbd>
        </button>
        <Navigation />
        <div class="who">
          {organization && <Organization name={organization.name ?? organization.id} />}
          <span class="operator" title={`${operator.id}, role ${operator.role}`}>
            {operator.name} <span class="soft">{operator.role}</span>
          </span>
          <button class="plain" onClick={() => void signOut()}>
            Sign out
          </button>
          <ThemeSwitch />
          <span class="soft version">{version}</span>
        </div>
      </header>
      <main id="content" tabIndex={-1}>
        {children}
      </main>
      {opened === "search" && <SearchDialog close={close} />}
      {opened === "shortcuts" && <ShortcutList close={close} />}
    </div>
  )
}
