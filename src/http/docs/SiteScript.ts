// One script for all pages, which the content security policy allows by its hash. The pages work without it.

const menu = `
const narrow = matchMedia("(max-width: 59.99rem)")
const menu = document.querySelector(".menu")
const fitMenu = () => { menu.firstElementChild.open = !narrow.matches }
fitMenu()
narrow.addEventListener("change", fitMenu)
menu.scrollTop = menu.querySelector("[aria-current]").offsetTop - 120
`

const languages = `
const stored = () => { try { return localStorage.getItem("language") } catch { return null } }
for (const radio of document.querySelectorAll("input[name=language]")) {
  if (radio.value === stored()) radio.checked = true
  radio.addEventListener("change", () => { try { localStorage.setItem("language", radio.value) } catch {} })
}
`

const copying = `
if (navigator.clipboard) {
  for (const block of document.querySelectorAll(".block")) {
    const button = document.createElement("button")
    button.type = "button"
    button.textContent = "Copy"
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(block.querySelector("pre").textContent)
      button.textContent = "Copied"
      setTimeout(() => { button.textContent = "Copy" }, 1500)
    })
    block.firstElementChild.append(button)
  }
}
`

// A result contains every word of the query. Matches in titles and at the start of words rank higher.
const search = `
const search = document.querySelector(".search")
const field = search.querySelector("input")
const results = search.querySelector(".results")
const status = results.querySelector("p")
const list = results.querySelector("ul")
const maxResults = 20
search.hidden = false

let loading
const load = async () => {
  const response = await fetch(search.dataset.index)
  if (!response.ok) throw new Error(response.statusText)
  const entries = await response.json()
  return entries.map((entry) => ({
    ...entry,
    lower: { page: entry.page.toLowerCase(), section: entry.section.toLowerCase(), text: entry.text.toLowerCase() }
  }))
}
const index = () => loading ??= load().catch((error) => { loading = undefined; throw error })

const isStart = (text, at) => at === 0 || !/[a-z0-9]/.test(text[at - 1])
const points = (text, word, start, middle) => {
  const at = text.indexOf(word)
  return at < 0 ? 0 : isStart(text, at) ? start : middle
}
const score = ({ lower }, words) => {
  const scores = words.map((word) =>
    points(lower.section, word, 12, 6) + points(lower.page, word, lower.section ? 4 : 14, 2) + points(lower.text, word, 2, 1))
  const query = words.join(" ")
  const phrase = words.length > 1 && lower.text.includes(query) ? 3 : 0
  const exact = lower.section === query || (lower.section === "" && lower.page === query) ? 20 : 0
  return scores.includes(0) ? 0 : scores.reduce((sum, one) => sum + one, exact + phrase)
}

const element = (name, ...children) => {
  const made = document.createElement(name)
  made.append(...children)
  return made
}
const excerpt = ({ lower, text }, words) => {
  const phrase = words.join(" ")
  const word = lower.text.includes(phrase) ? phrase : words[0]
  const at = lower.text.indexOf(word)
  const shorten = (part) => part.length < 140 ? part : part.slice(0, part.lastIndexOf(" ", 140)) + " …"
  if (at < 0) return element("small", shorten(text))
  const start = at < 50 ? 0 : text.indexOf(" ", at - 50) + 1
  const end = at + word.length
  return element("small", start > 0 ? "… " : "", text.slice(start, at), element("mark", text.slice(at, end)), shorten(text.slice(end)))
}
const show = (message, found, words) => {
  status.textContent = message
  list.replaceChildren(...found.map((entry) => {
    const link = element("a", element("strong", entry.section || entry.page), element("span", entry.section && entry.page), excerpt(entry, words))
    link.href = entry.url
    return element("li", link)
  }))
  results.hidden = false
}
const find = async () => {
  const query = field.value
  const words = query.toLowerCase().split(/\\s+/).filter((word) => word !== "")
  if (words.length === 0) { results.hidden = true; return }
  let entries
  try { entries = await index() } catch { show("The search is not available. Reload the page.", [], words); return }
  if (query !== field.value) return
  const found = entries.map((entry) => [score(entry, words), entry]).filter(([points]) => points > 0)
    .sort(([one], [other]) => other - one).map(([, entry]) => entry)
  const count = found.length === 1 ? "1 result" : found.length + " results"
  if (found.length === 0) show("No results for “" + query.trim() + "”. Try fewer or shorter words.", [], words)
  else show(found.length > maxResults ? "The best " + maxResults + " of " + count : count, found.slice(0, maxResults), words)
}
field.addEventListener("focus", () => { index().catch(() => {}); find() })
field.addEventListener("input", find)

const close = () => { results.hidden = true }
search.addEventListener("keydown", (event) => {
  const links = [...list.querySelectorAll("a")]
  const at = links.indexOf(document.activeElement)
  if (event.key === "ArrowDown") links[Math.min(at + 1, links.length - 1)]?.focus()
  else if (event.key === "ArrowUp") (links[at - 1] ?? field).focus()
  else if (event.key === "Enter" && at < 0) links[0]?.click()
  else if (event.key === "Escape") { field.value = ""; field.focus(); close() }
  else return
  event.preventDefault()
})
search.addEventListener("focusout", ({ relatedTarget }) => { if (relatedTarget && !search.contains(relatedTarget)) close() })
document.addEventListener("click", ({ target }) => { if (!search.contains(target) || target.closest("a")) close() })
document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input:not([type=radio]), textarea, select")) return
  event.preventDefault()
  field.focus()
  field.select()
})
`

// Sorting keeps each model in the table body of its kind, because prices of different kinds have different units.
const comparison = `
const table = document.querySelector(".compare table")
if (table) {
  const filter = document.querySelector("#filter")
  const count = document.querySelector(".filter p")
  filter.closest(".filter").hidden = false
  const bodies = [...table.tBodies]
  const rowsOf = (body) => [...body.rows].slice(1)
  const total = bodies.flatMap(rowsOf).length
  const apply = () => {
    const words = filter.value.toLowerCase().split(/\\s+/)
    let shown = 0
    for (const body of bodies) {
      const rows = rowsOf(body)
      for (const row of rows) row.hidden = !words.every((word) => row.dataset.words.includes(word))
      const left = rows.filter((row) => !row.hidden).length
      body.hidden = left === 0
      shown += left
    }
    count.textContent = shown === 0 ? "No model matches." : shown + " of " + total + " models"
  }
  filter.addEventListener("input", apply)
  apply()

  const compare = (one, other, order) => {
    if (one === "" || other === "") return one === other ? 0 : one === "" ? 1 : -1
    const numbers = [Number(one), Number(other)]
    return order * (numbers.some(Number.isNaN) ? one.localeCompare(other) : numbers[0] - numbers[1])
  }
  const heads = [...table.tHead.rows[0].cells]
  heads.forEach((head, column) => {
    const button = document.createElement("button")
    button.type = "button"
    button.append(...head.childNodes)
    head.append(button)
    button.addEventListener("click", () => {
      const order = head.getAttribute("aria-sort") === "ascending" ? -1 : 1
      for (const other of heads) other.removeAttribute("aria-sort")
      head.setAttribute("aria-sort", order > 0 ? "ascending" : "descending")
      for (const body of bodies) {
        const value = (row) => row.cells[column].dataset.value
        body.append(...rowsOf(body).sort((one, other) => compare(value(one), value(other), order)))
      }
    })
  })
}
`

export const script = [menu, languages, copying, search, comparison].map((part) => `{${part}}`).join("\n")
