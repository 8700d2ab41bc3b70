const quotation = /(?<!\w)(?:(["'`])(.*?)(?:\1(?!\w)|$)|“(.*?)(?:”|$))/g
const isName = (text: string): boolean => /^[\w.\-[\]/:*]*$/.test(text)

/** Vendors quote what they refuse. Replaces quoted text, which may be part of the prompt, with `…`; keeps quoted names. */
export const withoutQuotations = (text: string): string =>
  text.replace(quotation, (all: string, mark: string | undefined, inner = "", typographic = "") => {
    if (mark === undefined) return isName(typographic) ? all : "“…”"
    return isName(inner) ? all : `${mark}…${mark}`
  })
