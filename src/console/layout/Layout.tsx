import type { ComponentChildren } from "preact"
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks"
import type { ApiError } from "../api/ApiError.ts"
import { setTheme, themes, useRoute, useTheme } from "../BrowserState.ts"
import { Dialog } from "../parts/Dialog.tsx"
import { ErrorBox } from "../parts/Feedback.tsx"
import { shorten } from "../parts/Values.tsx"
import { link } from "../Route.ts"
import { type Session, signIn, signOut } from "../SignedIn.ts"
import { SearchDialog } from "../search/Search.tsx"
import { useViews } from "../views.ts"

const isTyping = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement && (target.isContentEditable || target.matches("input, select, textarea"))

/** The time to press the second key after `g`. */
const chordMillis = 1500

type DialogName = "search" | "shortcuts"

const dialogKeys: Readonly<Record<string, DialogName>> = { "/": "search", "?": "shortcuts" }

const isSearch = ({ altKey, ctrlKey, key, metaKey, shiftKey }: KeyboardEvent): boolean =>
  (ctrlKey || metaKey) && !altKey && !shiftKey && key.toLowerCase() === "k"

/** Opens the menu of filters. If there is none, focuses the first filter. */
const focusFilters = () => {
  const menu = document.querySelector<HTMLElement>("[data-add-filter]")
  if (menu === null) document.querySelector<HTMLElement>("[data-filter]")?.focus()
  else menu.click()
}

/** Returns the open dialog, and functions to open and close one. */
const useShortcuts = () => {
  const [dialog, open] = useState<DialogName>()
  const views = useViews()
  useEffect(() => {
    let chordUntil = 0
    const handleKey = (event: KeyboardEvent) => {
      const { key, target } = event
      if (isSearch(event)) event.preventDefault()
      if (key === "Escape" && target instanceof HTMLElement && isTyping(target)) target.blur()
      if (document.querySelector("dialog[open]") !== null) return
      if (isSearch(event)) open("search")
      if (event.ctrlKey || event.metaKey || event.altKey || isTyping(target)) return
      const isChord = performance.now() < chordUntil
      const view = views.find((candidate) => candidate.key === key)
      chordUntil = key === "g" ? performance.now() + chordMillis : 0
      if (isChord && view !== undefined) location.hash = link([view.path])
      if (key === "/" || key === "f") event.preventDefault()
      if (dialogKeys[key] !== undefined) open(dialogKeys[key])
      if (key === "f") focusFilters()
    }
    addEventListener("keydown", handleKey)
    return () => removeEventListener("keydown", handleKey)
  }, [views])
  return { dialog, open, close: () => open(undefined) } as const
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
          <span>Token</span>
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
          You sign in with a one-time link or a token. If your link has expired, ask the person who invited you for a
          new one. The operator of this gateway runs <code>gateway operators create</code>.
        </p>
      </form>
    </main>
  )
}

const Navigation = () => {
  const [viewPath = ""] = useRoute().path
  const views = useViews()
  return (
    <nav aria-label="Main navigation">
      {[...new Set(views.map(({ group }) => group))].map((group) => (
        <div key={group} {...(group !== "main" && { role: "group", "aria-label": group })}>
          {group !== "main" && <small aria-hidden="true">{group}</small>}
          {views.map(
            (view) =>
              view.group === group && (
                <a key={view.path} href={link([view.path])} aria-current={viewPath === view.path ? "page" : undefined}>
                  {view.title}
                </a>
              )
          )}
        </div>
      ))}
    </nav>
  )
}

const ThemeSwitch = () => {
  const theme = useTheme()
  return (
    <fieldset class="switch">
      <legend>Theme</legend>
      {themes.map((option) => (
        <label key={option}>
          <input type="radio" name="theme" checked={theme === option} onChange={() => setTheme(option)} />
          <span>{option}</span>
        </label>
      ))}
    </fieldset>
  )
}

const maxNameLength = 60

const Organization = ({ name }: { readonly name: string }) => (
  <strong class="organization" title={name.length > maxNameLength ? name : undefined}>
    <bdi>{shorten(name, maxNameLength)}</bdi>
  </strong>
)

const generalShortcuts = [
  ["/", "Search"],
  ["Ctrl K", "Search, even while you type in a field"],
  ["f", "Add a filter"],
  ["Esc", "Close a dialog or leave a field"],
  ["?", "Show keyboard shortcuts"]
]

const ShortcutList = ({ close }: { readonly close: () => void }) => (
  <Dialog title="Keyboard shortcuts" onClose={close}>
    <dl class="facts">
      {[...useViews().map(({ key, title }) => [`g ${key}`, title]), ...generalShortcuts].map(([keys = "", meaning]) => (
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

const skipToContent = (event: Event) => {
  event.preventDefault()
  document.querySelector<HTMLElement>("main")?.focus()
}

export const Layout = ({ children, session }: { readonly session: Session; readonly children: ComponentChildren }) => {
  const { close, dialog, open } = useShortcuts()
  const { operator, organization, sandbox, version } = session
  // Only narrow pages have the button. The menu closes when the address changes.
  const [isMenuOpen, setMenuOpen] = useState(false)
  const menuButton = useRef<HTMLButtonElement>(null)
  const route = useRoute()
  useLayoutEffect(() => setMenuOpen(false), [route])
  const closeOnEscape = ({ key }: KeyboardEvent) => {
    if (key !== "Escape" || !isMenuOpen) return
    setMenuOpen(false)
    menuButton.current?.focus()
  }
  return (
    <div class="layout">
      <a class="skip" href="#content" onClick={skipToContent}>
        Skip to content
      </a>
      <header class={isMenuOpen ? "side open" : "side"} onKeyDown={closeOnEscape}>
        <strong class="brand">Gateway{sandbox && <span class="badge warn">sandbox</span>}</strong>
        <button class="search" aria-keyshortcuts="/ Control+K Meta+K" onClick={() => open("search")}>
          Search <kbd aria-hidden="true">/</kbd>
        </button>
        <button
          ref={menuButton}
          class="menu"
          aria-expanded={isMenuOpen}
          aria-controls="menu"
          onClick={() => setMenuOpen(!isMenuOpen)}
        >
          Menu
        </button>
        <div id="menu">
          <Navigation />
          <div class="who">
            {organization && <Organization name={organization.name ?? organization.id} />}
            <span class="operator" title={`${operator.id}, role ${operator.role}`}>
              {operator.name} <span class="soft">{operator.role}</span>
            </span>
            <a href="docs" target="_blank" rel="noreferrer">
              Documentation
            </a>
            <button class="plain" onClick={() => void signOut()}>
              Sign out
            </button>
            <ThemeSwitch />
            <span class="soft version">{version}</span>
          </div>
        </div>
      </header>
      <main id="content" tabIndex={-1}>
        {children}
      </main>
      {dialog === "search" && <SearchDialog close={close} />}
      {dialog === "shortcuts" && <ShortcutList close={close} />}
    </div>
  )
}
