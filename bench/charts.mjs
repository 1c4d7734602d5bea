/** Charts as SVG: plain text, in the reader's colour scheme, with every value as a label. */

const width = 720
const left = 190
const right = 110

const escapeXml = (text) => String(text).replaceAll("&", "&amp;").replaceAll("<", "&lt;")

const style = `<style>
  text { font: 13px system-ui, sans-serif; fill: #1f2328 }
  .title { font-weight: 600; font-size: 15px }
  .faint { fill: #59636e }
  .axis { stroke: #d1d9e0 }
  .bare { fill: #818b98; stroke: #818b98 } .handwritten { fill: #bc8c00; stroke: #bc8c00 }
  .server { fill: #0969da; stroke: #0969da } .embedded { fill: #1a7f64; stroke: #1a7f64 }
  .line { fill: none; stroke-width: 2 }
  @media (prefers-color-scheme: dark) {
    text { fill: #f0f6fc } .faint { fill: #9198a1 } .axis { stroke: #3d444d }
    .bare { fill: #9198a1; stroke: #9198a1 } .handwritten { fill: #d29922; stroke: #d29922 }
    .server { fill: #4493f8; stroke: #4493f8 } .embedded { fill: #3fb99a; stroke: #3fb99a }
    .line { fill: none }
  }
</style>`

const svg = (title, height, content) =>
  `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="${escapeXml(title).replaceAll('"', "&quot;")}">
${style}
<text class="title" x="0" y="18">${escapeXml(title)}</text>
${content.join("\n")}
</svg>
`

const formatNumber = (value) =>
  value >= 100 ? Math.round(value).toLocaleString("en-US") : String(Number(value.toPrecision(3)))

/** Bars in groups: `[{group, bars: [{kind, name, value, note}]}]`; all on one scale, or each group on its own. */
export const bars = (title, groups, { unit = "", ownScale = false } = {}) => {
  const content = []
  const max = Math.max(...groups.flatMap(({ bars: some }) => some.map(({ value }) => value)))
  let y = 34
  for (const { bars: some, group } of groups) {
    const scale = (ownScale ? Math.max(...some.map(({ value }) => value)) : max) || 1
    content.push(`<text class="faint" x="0" y="${y + 12}">${escapeXml(group)}</text>`)
    y += 20
    for (const { kind, name, note, value } of some) {
      const length = Math.max(1, ((width - left - right) * value) / scale).toFixed(1)
      const text = `${formatNumber(value)}${unit}${note === undefined ? "" : ` (${note})`}`
      content.push(
        `<text x="12" y="${y + 12}">${escapeXml(name)}</text>`,
        `<rect class="${kind}" x="${left}" y="${y + 1}" width="${length}" height="14" rx="2" stroke="none"/>`,
        `<text x="${(left + Number(length) + 6).toFixed(1)}" y="${y + 12}">${escapeXml(text)}</text>`
      )
      y += 20
    }
    y += 8
  }
  return svg(title, y, content)
}

/** Lines over a logarithmic width and height: `[{kind, name, points: [[x, y]]}]`. */
export const lines = (title, series, { unit = "", across = "" } = {}) => {
  const height = 320
  const box = { left: 60, top: 40, right: width - 270, bottom: height - 40 }
  const points = series.flatMap((one) => one.points)
  const [xs, ys] = [0, 1].map((place) => points.map((point) => Math.log10(point[place])))
  const [low, high] = [Math.floor(Math.min(...ys)), Math.ceil(Math.max(...ys) + 0.01)]
  const x = (value) =>
    box.left +
    ((Math.log10(value) - Math.min(...xs)) / (Math.max(...xs) - Math.min(...xs) || 1)) *
      (box.right - box.left)
  const y = (value) => box.bottom - ((Math.log10(value) - low) / (high - low)) * (box.bottom - box.top)
  const content = []
  for (let power = low; power <= high; power++) {
    const at = y(10 ** power).toFixed(1)
    content.push(
      `<line class="axis" x1="${box.left}" x2="${box.right}" y1="${at}" y2="${at}"/>`,
      `<text class="faint" x="${box.left - 8}" y="${Number(at) + 4}" text-anchor="end">${formatNumber(10 ** power)}${unit}</text>`
    )
  }
  for (const value of new Set(points.map(([at]) => at))) {
    content.push(
      `<text class="faint" x="${x(value).toFixed(1)}" y="${box.bottom + 18}" text-anchor="middle">${formatNumber(value)}</text>`
    )
  }
  content.push(`<text class="faint" x="${box.left}" y="${box.bottom + 36}">${escapeXml(across)}</text>`)
  // Labels are next to the ends of the lines, without overlap.
  let nextLabelY = -Infinity
  const byLastValue = series.toSorted((a, b) => y(a.points.at(-1)[1]) - y(b.points.at(-1)[1]))
  for (const { dashed, kind, name, points: some } of byLastValue) {
    const path = some.map(([px, py]) => `${x(px).toFixed(1)},${y(py).toFixed(1)}`).join(" ")
    const last = some.at(-1)[1]
    const dash = dashed ? ' stroke-dasharray="5 4"' : ""
    nextLabelY = Math.max(nextLabelY + 18, y(last))
    content.push(
      `<polyline class="${kind} line" points="${path}"${dash}/>`,
      ...some.map(
        ([px, py]) => `<circle class="${kind}" cx="${x(px).toFixed(1)}" cy="${y(py).toFixed(1)}" r="3"/>`
      ),
      `<line class="${kind} line" x1="${box.right + 12}" x2="${box.right + 34}" y1="${nextLabelY.toFixed(1)}" y2="${nextLabelY.toFixed(1)}"${dash}/>`,
      `<text x="${box.right + 40}" y="${(nextLabelY + 4).toFixed(1)}">${escapeXml(name)}: ${formatNumber(last)}${unit}</text>`
    )
  }
  return svg(title, height, content)
}
