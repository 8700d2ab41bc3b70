/** The page works without it. */
export const script = `
const menu = document.querySelector("nav details")
if (matchMedia("(max-width: 59.99rem)").matches) menu.open = false
const kept = () => { try { return localStorage.getItem("language") } catch { return null } }
for (const radio of document.querySelectorAll("input[name=language]")) {
  if (radio.value === kept()) radio.checked = true
  radio.addEventListener("change", () => { try { localStorage.setItem("language", radio.value) } catch {} })
}
if (navigator.clipboard) {
  for (const sample of document.querySelectorAll("pre")) {
    const block = document.createElement("div")
    block.className = "block"
    if (sample.classList.contains("sample")) block.classList.add(...sample.classList)
    sample.replaceWith(block)
    const button = document.createElement("button")
    button.className = "copy"
    button.textContent = "Copy"
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(sample.textContent)
      button.textContent = "Copied"
      setTimeout(() => { button.textContent = "Copy" }, 1500)
    })
    block.append(sample, button)
  }
}
`
