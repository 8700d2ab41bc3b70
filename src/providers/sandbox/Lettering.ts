/** Turns a prompt into lines of letters, and a letter into its pixels, with a font of its own. */
import { brotliDecompressSync } from "node:zlib"

/** X11's public-domain font `misc-fixed` 10x20, two bytes a row; its last letter is the box for all that it lacks. */
const font = [
  "Hz9RMB6prX47ZS94Xpf/dvznyWlORU4rsF30NGBSYEUByGlGKYO+rGSSvstbYcTbBl197O2DPtpWRpH1liq4zf6BaZxQgJxP7qevcH6ycnR+rMZycnK",
  "sqqZRZRSV+7JAcjqjjEpqBA7oq68GbQeUe/Xr16psV9QRsPA9R0jqNrsqY6Knp5ZBHaveiXOblfl+8WIfNSyrA0Kr0QEaeUacXCHXb6L28WbA+eWK50",
  "oPwYgwvwXxEUEEY0QwQtuCMGIxh1jE4ivXFUCRyK4g9fh66S7DX+72v+ewqBiK44qaSU9WzevPqBb++8BmpqyfeZ4QDzz2nQ0AAADQK4rid8GULpmT6",
  "tFfzvs/Bm65j44CPLmx50CU9xH4iF4Z8PTTSlGi9IJ2jI76u99q9bgOMdRsaSg86zl2Tbv6fBiINDVJDR9WTgxje7+nCYUUQyNJG5zkk2wFOZEg6uY4",
  "WBt5ib58AYdDOvdoSvYkV8eBhonDtjtlVTVZaC0xn4GCwQ15Oa5jnfy1biA5lg3rLMF8wcqvUcrvvZztyUiCK/GqPIdFCM/eUOhS9nNqTB7RYZlcCj2",
  "eKZ+RTz5bLGE0BLbGEGfCcUypWOqRX3k/jYHeqh/OCFZHyDomVutBJHg/IVelgWC1ms5MUc4jhPv4jCw7Titolrtc5GQb37cBRW8hOPNmzH/aaVxGSB",
  "HVw+fYk5ktZDwP78PzPONlPIegeSkJG3VGXQ6m3tWUueQDyx6ZeKwscUgudIQkipe4c95H7CdA3TLwzmtSAR/bFAyk1CBETWDuyoVHSe8q80VVeJkzA",
  "u3o7OPVhU7iMSKX+LyAjjZVCFLVWd82GFnMfSfezJ581G10p22rQ7OWwJGVF6/buJ8x6VNehuof1omiIPQjiA2z3+TE+wnMCbVT1Tmx5ebWL/yehOx+",
  "H8ARyf6YO1igNDxM51aKg/xoDGMBMJNMcvEAcK7HmD17xAbHkoi5BIK9isO6Jmvzmlp6utw5Qo3DVVSUH4JziaKOSA8sEE+AmvgVmkhB2ozEBW5VfwS",
  "sC6yy1lCruUeIHJxLLnwEp0zqkDr5OdrCt1mkwISKWN0VWPImHy2dfSXi5mFUarhztK3592az48vaTZ1/YIrxX9bLV6JazccBsSX7/gOU7PdiVNRxGA",
  "VBK6DIdX90roH6fyyeC9bswdv3EOqAsvmP32fpnpLeRFpxz9I+0E8xfHyDWDrV0dFzDTbkfEmeJ9JSCzMXestHzuuVuaybLYZb6BV9oHXXTzNKut33E",
  "dWPrWJfqKlbQs8Q3EK6bCOYBFT43aOGC8IlwdinAVM7gaMHp3Jl1dK/7/OEl153aI9Trnu/TgssgOGjn3bDy4K2RuYHY4qO+cIptd9tTq6eQX7EBsty",
  "E4pfXuPWWLCBDqK4tXdUH6f0aCv8VDV9+3UAFyRFWQrnsZgslUwB54Cxl1yaRZfLeUIN5ATFrVQKzu/dK5HcahVlAopIOw3GgrvqeSsMDg6Va9kxCec",
  "ab4BKwAwEFGQVRa4ejWffVjCVGjGVDeLxNQz0OUMzIv7KW96n5jwaRyjIAAJFpB1qwVbCZc+LdDRKcc3ws1r39rZr1wo1zVWFlCvTWbK4MlADAQVNEA",
  "r6FgFHIgDZ/578XIelzu/p1nxfwDkJ5T0FK9YE3EBAcelBySparGnUKBNQXErQX62pSZtM6UIGG8lAwUGLNTlHMbiDNxChIKsobj0onSfkFs9/soBiM",
  "UxDmYTyW7SAk0eogYDi0oNSELECns6SnhMumvdAFlj9HBlWF584ABiu+BqltwrZTQ7a1eWxeuNdcNhyccBbbbAFFs30A9UKDypJGGcTVzMDECfFMAjI",
  "t56eNuIpCpnf9Oz27puY30WrWTwLzgG0pY+qnxvDqouH7Y8SmlYsc8tBu7qHkM6GWw5CyuP8zhwO8XadHYz1WuLQqHHwIAOflTKZqpBhX6nzeeNqGrS",
  "jh5DOhlsOQlJAw9HC6+/ZYy4JAp8PUKHyAF410MyVr6rnAl3Hc8G3k+qsEGjQnI2mGWph9S0DjJWzjINgR2ms8uxJ1qjdYhcc7EH6BqdbBUCtKRxlvf",
  "tio4T29aB5NAS77/U6EQwcxAtQ3OcAHvQ7RhhyqJr/5CsKQkUVljTIPvjmsWJueihCQbukGlU/LwPAaJDmAFsFKjZKBtq9q01TrswUv05BfhubDfNcQ",
  "bwY/LqzWfWVdMUZJ7V353erdMsyvSxhymRYwulHW4MjSRpWl0pWL6VKn6MGDQzW4Ci4DZV3kIaODZsmQDbSiYCtvHToWJpxNVY1FsgXPFXWu+HPN0bx",
  "lGZBPfdmvkVaZFaklFeRxgwHVq+W0QaOiTT14hMhJsBWGVYoRSl8+QeAtSIn4GqGDryZxMkqe4XZwAxb5UEEG2dIhAA1B4KXgKKWLPq44lUqqG1cokL",
  "Hzr9Tbnd40shBU5HDm2ISVjUDBcOKe19cdpnwoBUvA5F2SBKaKYJUcOFjXByw+C543q7ZxJt2PMu2RgofxJmNdm4p68fHJ3RVNvfYaG+4LD1Re5xy34",
  "dKO2MBNxO/aOIH32VJouo/zGfyEJyklC1s76eiezxluIn7GvMGgS70FC9rvIXvBPlRvYHQhVAshomhZY1xmBdbpwUminTXLB01uyNZjJ7LE5R7OsK08",
  "Oa6dKjBTmRalvRmUjNJRk/jqsGON3ThZjrS1D5Z4owT7tEmLCGtZ+oBK59yWULFUdPd/UxFfKUknAruEmmw448wTxrLBUsHKuPN9FyjVWFbqLpc7vzz",
  "wdUTG3DnfO98Ev7NOcUrcIrYZM7SdNkEja0FN98+wtKB+7qnBZwtUUfdeyUK+5I9N5KJzQ2H2XMqsHATGvRysmHoaceySDZwlw5APGfnRKP256b2IDq",
  "aIwFoqjT0S3oCiyopFLi5vLGd9zUa2Zm8XEzQCZ52pAIdoR6LcCN+uU6hVp7wqOn5SGVl1ZoVGK5mqvL3CSZH44klEXcGTL2koSfpZ6PZiAh1zsm1Kw",
  "lGuNruaPCJZKPBlfJYABqbt/Oi/JItHABaIeNplVixraCT3zRTnGOGjwIAF1ixZJk5pTTmZdsYTbeNdVJaU2SH+tko6/lF3bMupwHNjJRzOFRNZ0v1J",
  "b7y2mftGUdq5X6lKlmEPHZdHDI2iAL/54JBr2Ur0ji1Y5YxlEm3vQQ2xx2MEDC4LxgveUE0Si03SLpQnWJpmkZXxQFvdCdTCPCZ4m+SInxGX65qaAx8",
  "2lCAgsFYCjTEW+jtNnE/KTc4yno0hKdHCO1smXHUfnV91OkUtvrStsXmPTXS7NHTq0O/c7/xehxggXlwc5mRnO+usheSWXMsCuhQkxDfjFVpXVUlvbA",
  "8JBYDByuJo27EdFcGEKEGvGCYyA6ORLSIbBrceM0hJboZa2z4AbGY3KZoJN8AGd7ZhmpGiXG7LzYNTTAnoQAAxgxMUfa0RmAGCj1WYxFKBp69S2xxgc",
  "n/Mm/LRisvp0WsvnqTfGO/lr+/H1lW/GwkvNqVhCahXJ2cXSV80xtqdgGvACS2ya8vJSPZEYoiolN4BQXhDb94z/t3iiUrBcJdouMb5uYiQuOq+BcCs",
  "9H9JrB7w/lqWM/53VTffRH0+v/fNYgnwI/i3w8mPB6N1K9yytkFc38v0mLA8U3H9I7VONb4a6a+AIM0GvpZvZmvmx4Ystb30ImynE3PuMbHM8yVz3zg",
  "HT710Mpz7ri/oSh9SxbgQVtIVnhMeE59tzl4ImVKLUv2spNZaXdw8DF+aaWr0z94F1rThElrF4Dmc4L94eBrCjSspgA="
].join("")

const columns = 10
const rows = 20
const bytesPerLetter = 2 * rows

/** First and last code points of its alphabets: Latin, Greek, Cyrillic, and signs. */
const alphabets: ReadonlyArray<readonly [first: number, last: number]> = [
  [0x20, 0x7e],
  [0xa0, 0x17f],
  [0x384, 0x3ce],
  [0x400, 0x45f],
  [0x490, 0x491],
  [0x2010, 0x2015],
  [0x2018, 0x201e],
  [0x2020, 0x2022],
  [0x2026, 0x2026],
  [0x20ac, 0x20ac],
  [0x2122, 0x2122],
  [0x2190, 0x2193],
  [0x2212, 0x2212],
  [0x2260, 0x2260],
  [0x2264, 0x2265]
]

const codePoints = alphabets.flatMap(([first, last]) => Array.from({ length: last - first + 1 }, (_, at) => first + at))
const places = new Map(codePoints.map((codePoint, place) => [String.fromCodePoint(codePoint), place]))
const bitmaps = brotliDecompressSync(Buffer.from(font, "base64"))

/** The ink of a pixel is 0 to this. */
export const fullInk = 8

export const widthOf = (height: number): number => Math.floor((height * columns) / rows)

/** The ink of each pixel of a letter; its edges are interpolated, so that it is smooth at any height. */
export const drawLetter = (letter: string, height: number): Uint8Array => {
  const bitmap = bytesPerLetter * (places.get(letter) ?? codePoints.length)
  const dot = (x: number, y: number): number => {
    if (x < 0 || x >= columns || y < 0 || y >= rows) return 0
    return (bitmaps.readUInt16BE(bitmap + 2 * y) >> (columns - 1 - x)) & 1
  }
  const width = widthOf(height)
  const scale = height / rows
  const ink = new Uint8Array(width * height)
  // Between two rows of the bitmap, with an empty column on either side.
  const between = new Float64Array(columns + 2)
  for (let y = 0; y < height; y++) {
    const down = (y + 0.5) / scale - 0.5
    const top = Math.floor(down)
    for (let x = 0; x < between.length; x++) {
      const upper = dot(x - 1, top)
      between[x] = upper + (down - top) * (dot(x - 1, top + 1) - upper)
    }
    for (let x = 0; x < width; x++) {
      const right = ((x + 0.5) * columns) / width + 0.5
      const left = Math.floor(right)
      const from = between[left] ?? 0
      const shade = from + (right - left) * ((between[left + 1] ?? 0) - from)
      ink[y * width + x] = Math.round(fullInk * Math.min(1, Math.max(0, (shade - 0.5) * scale + 0.5)))
    }
  }
  return ink
}

export interface Area {
  readonly width: number
  readonly height: number
}

type Line = ReadonlyArray<string>

export interface Layout {
  readonly height: number
  readonly lines: ReadonlyArray<Line>
}

/** In code points; what follows is not read. */
export const maxLetters = 1_000

const visible = (text: string): string => {
  const letters = Array.from(
    text
      .slice(0, 2 * maxLetters)
      .normalize("NFC")
      .replaceAll(/\r\n?|[\u0085\u2028\u2029]/g, "\n")
      .replaceAll(/(?!\n)[\p{Cc}\p{Zs}]+/gu, " ")
      .replaceAll(/[\p{Cs}\p{M}\p{Default_Ignorable_Code_Point}\u2800\ufff9-\ufffc]/gu, "")
      .replaceAll(/\n{3,}/g, "\n\n")
      .trim()
  )
  return letters.length <= maxLetters ? letters.join("") : `${letters.slice(0, maxLetters).join("")}…`
}

/** Breaks at spaces, and inside a word only where it is longer than a line. */
const wrap = (text: string, length: number): ReadonlyArray<Line> =>
  text.split("\n").flatMap((paragraph) => {
    const lines: Array<Line> = []
    let rest = Array.from(paragraph)
    while (rest.length > length) {
      const space = rest.lastIndexOf(" ", length)
      lines.push(rest.slice(0, space > 0 ? space : length))
      rest = rest.slice(space > 0 ? space + 1 : length)
    }
    return [...lines, rest]
  })

/** In the largest of the heights at which all of the text fits; at the smallest the text is cut. */
export const layOut = (text: string, area: Area, heights: ReadonlyArray<number>): Layout => {
  const written = visible(text)
  const longestWord = Math.max(...written.split(/\s/).map((word) => Array.from(word).length))
  let layout: Layout = { height: 1, lines: [] }
  for (const height of written === "" ? [] : heights) {
    const length = Math.max(1, Math.floor(area.width / widthOf(height)))
    const room = Math.max(1, Math.floor(area.height / height))
    const lines = wrap(written, length)
    if (lines.length <= room && longestWord <= length) return { height, lines }
    const last = lines[room - 1] ?? []
    const cut = lines.length <= room ? lines : [...lines.slice(0, room - 1), [...last.slice(0, length - 1), "…"]]
    layout = { height, lines: cut }
  }
  return layout
}
