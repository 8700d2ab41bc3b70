const named: Readonly<Record<string, string>> = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'" }

const unescape = (text: string) =>
  text.replace(/&(?:#(\d{1,7})|#x([\da-f]{1,6})|(\w+));/gi, (whole, decimal, hex, name) => {
    const code = decimal === undefined ? Number.parseInt(hex ?? "", 16) : Number(decimal)
    return code <= 0x10ffff ? String.fromCodePoint(code) : (named[name] ?? whole)
  })

/** The text of the first element of this name. S3 answers with flat documents: nothing more is needed of XML. */
export const elementOf = (xml: string, name: string): string | undefined => {
  const text = new RegExp(`<${name}>([^<]*)</${name}>`).exec(xml)?.[1]
  return text === undefined ? undefined : unescape(text)
}

export const escape = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;")
