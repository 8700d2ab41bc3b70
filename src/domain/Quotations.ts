const quotation = /(?<!\w)(?:(["'`])(.*?)(?:\1(?!\w)|$)|“(.*?)(?:”|$))/g
const isName = (text: string): boolean => /^[\w.\-[\]/:*]*$/.test(text)

/** Vendors quote what they refuse: names stay, and what may be a part of the prompt becomes `…`, so that it is not logged. */
export const withoutQuotations = (text: string): string =>
  text.replace(quotation, (all: string, mark: string | undefined, inner = "", typographic = "") => {
    if (mark === undefined) return isName(typographic) ? all : "“…”"
    return isName(inner) ? all : `${mark}…${mark}`
  })
