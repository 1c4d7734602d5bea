/**
 * Accordions, tabs and notes of a page. Their panels are hidden until a script shows them, and their titles are buttons
 * and labels. The extraction removes both.
 */
import { type Document, isMainlyLinks, type Node, replaceBy, textOf } from "./Dom.ts"
import { isNoContent } from "./HtmlNames.ts"

/** Maximum lists of tabs of a page whose tabs are found by their order. Each search takes the time of its container. */
const maxTabLists = 100

/** Elements that a page shows on request and that are no part of its text. */
const overlayRole = /^(?:alertdialog|dialog|listbox|menu|menubar|navigation|search|tooltip)$/

/** Names of accordions and tabs, and of their parts. */
const panelName =
  /(?:^|[\s_-])(?:accordion|answer|collaps(?:e|ed|ible)|disclosure|expand(?:able|er)?|faqs?|panel|tabs?|toggle)(?=$|[\s_-])/i

const nameOf = (node: Node): string => `${node.getAttribute("class") ?? ""} ${node.getAttribute("id") ?? ""}`

const hiddenStyle = /(?:^|;)\s*(?:display\s*:\s*none|visibility\s*:\s*hidden|opacity\s*:\s*0)\s*(?:;|$)/i

const isHidden = (node: Node): boolean =>
  node.getAttribute("hidden") !== null ||
  node.getAttribute("aria-hidden") === "true" ||
  hiddenStyle.test(node.getAttribute("style") ?? "")

/** True for text that is not mainly links and has no fields: menus and forms are no panels. */
const isProse = (node: Node): boolean => {
  if (textOf(node) === "" || overlayRole.test(node.getAttribute("role") ?? "")) return false
  if (node.querySelector("input:not([type=radio]):not([type=checkbox]), select, textarea") !== null)
    return false
  return !isMainlyLinks(node)
}

const show = (page: Document, panel: Node): void => {
  if (panel.tagName === "NAV" || panel.tagName === "ASIDE") return replaceBy(page, panel, "div")
  for (const name of ["hidden", "aria-hidden", "style", "class", "role"]) panel.removeAttribute(name)
}

/** Makes the title of a panel text. */
const keepTitle = (page: Document, control: Node): void => {
  if (control.tagName !== "BUTTON") return
  const isInline = control.closest("h1, h2, h3, h4, h5, h6, p, li, dt, summary, td, th") !== null
  replaceBy(page, control, isInline ? "span" : "p")
}

/** Puts the name of a tab before its panel. A panel that is a listing keeps the name of its language. */
const labelPanel = (page: Document, tab: Node, panel: Node): void => {
  const paragraph = page.createElement("p")
  paragraph.textContent = textOf(tab)
  if (nameOf(panel).includes("language-")) return panel.parentElement?.insertBefore(paragraph, panel)
  show(page, panel)
  panel.insertBefore(paragraph, panel.firstChild)
}

/** The panel of each tab: the one that it names, else the one at its place. False if a tab has no panel. */
const showTabs = (
  page: Document,
  tabs: ReadonlyArray<Node>,
  panels: ReadonlyArray<Node>,
  panelOf: (control: Node) => Node | undefined
): boolean => {
  const isOrdered = tabs.length === panels.length
  let labelled = 0
  for (const [place, tab] of tabs.entries()) {
    const panel = panelOf(tab) ?? (isOrdered ? panels[place] : undefined)
    if (panel === undefined || panel.closest("[role=tablist]") !== null || !isProse(panel)) continue
    labelPanel(page, tab, panel)
    labelled++
  }
  return labelled === tabs.length
}

const byId = (page: Document): Map<string, Node> => {
  const found = new Map<string, Node>()
  for (const node of page.querySelectorAll("[id]")) {
    const id = node.getAttribute("id") ?? ""
    if (!found.has(id)) found.set(id, node)
  }
  return found
}

/** Panels of tabs, by the id of the tab that they name. */
const byLabel = (page: Document): Map<string, Node> =>
  new Map(
    [...page.querySelectorAll("[role=tabpanel][aria-labelledby], .tabpanel[aria-labelledby]")].map(
      (panel) => [panel.getAttribute("aria-labelledby") ?? "", panel]
    )
  )

/**
 * Finds the panel that a control names, or that names the control. Each panel is found once, because its text is read
 * then.
 */
const controlled = (nodes: Map<string, Node>, labelled: Map<string, Node>) => (control: Node) => {
  const target =
    control.getAttribute("aria-controls") ??
    control.getAttribute("data-bs-target") ??
    control.getAttribute("data-target")
  const id = target?.replace(/^#/, "") ?? ""
  const own = control.getAttribute("id") ?? ""
  const panel = nodes.get(id) ?? labelled.get(own)
  nodes.delete(id)
  labelled.delete(own)
  return panel
}

/** Sets of tabs that style sheets make of fields and labels: the set, its labels and its panels. */
const labelSets = [
  [".tabbed-set", ".tabbed-labels > label", ".tabbed-block"],
  [".tabbed-set", "label", ".tabbed-content"],
  [".sd-tab-set", ".sd-tab-label", ".sd-tab-content"],
  [".vp-code-group", ".tabs > label", ".blocks > div"]
] as const

/** Of lists of tabs with roles, and of those that style sheets make of fields and labels. */
const showTabLists = (page: Document, panelOf: (control: Node) => Node | undefined): void => {
  for (const list of [...page.querySelectorAll("[role=tablist]")].slice(0, maxTabLists)) {
    const panels = list.parentElement?.querySelectorAll("[role=tabpanel]") ?? []
    if (showTabs(page, [...list.querySelectorAll("[role=tab]")], [...panels], panelOf)) list.remove()
  }
  const found = labelSets.flatMap((kind) =>
    [...page.querySelectorAll(kind[0])].map((set) => [set, kind] as const)
  )
  for (const [set, [, labels, panels]] of found.slice(0, maxTabLists)) {
    const tabs = [...set.querySelectorAll(labels)]
    if (showTabs(page, tabs, [...set.querySelectorAll(panels)], () => undefined))
      for (const tab of tabs) tab.remove()
  }
  for (const list of [...page.querySelectorAll(".tablist")].slice(0, maxTabLists))
    if (showTabs(page, [...list.querySelectorAll("li.tab")], [], panelOf)) list.remove()
  for (const panel of page.querySelectorAll("[role=tabpanel]")) if (isProse(panel)) show(page, panel)
}

/** Notes that Docusaurus takes for alerts of a kind that is a color. Their headings are their titles. */
const nameAdmonitions = (page: Document): void => {
  for (const note of page.querySelectorAll(".theme-admonition")) {
    const kind = /(?:^|\s)theme-admonition-(\w{1,20})/.exec(nameOf(note))?.[1] ?? "note"
    const heading = note.firstElementChild
    if (heading === null || !/(?:^|\s)admonitionHeading/.test(nameOf(heading))) continue
    note.setAttribute("class", `admonition ${kind}`)
    heading.setAttribute("class", "admonition-title")
  }
}

const noteKind = /(?:^|\s)(caution|danger|important|info|note|tip|warning)(?=$|\s)/i
const kindOf = (names: string): string | undefined => noteKind.exec(names)?.[1]?.toLowerCase()

const noteHeadings = "div > h2, div > h3, div > h4, div > h5, div > h6"
/** Maximum number of cells of a note: an icon, a title, an empty one below the icon, and the text. */
const maxNoteCells = 4

/** Gives a note the names of Sphinx, with `text` as its title. */
const nameNote = (page: Document, note: Node, kind: string, text: string): void => {
  note.setAttribute("class", `admonition ${kind}`)
  const title = page.createElement("p")
  title.setAttribute("class", "admonition-title")
  title.textContent = text
  note.insertBefore(title, note.firstChild)
}

/**
 * Names notes that begin with a heading, as those of DocBook and Apache. The heading begins no section: what follows the
 * note belongs to the section before it.
 */
const nameNotesWithHeadings = (page: Document): void => {
  for (const heading of page.querySelectorAll(noteHeadings)) {
    const { parentElement: note } = heading
    const kind = kindOf(note?.getAttribute("class") ?? "")
    if (note === null || kind === undefined || note.firstElementChild !== heading) continue
    if ([...note.querySelectorAll("h1, h2, h3, h4, h5, h6")].length > 1) continue
    nameNote(page, note, kind, textOf(heading))
    heading.remove()
  }
}

/** Names notes that are a table of an icon, a title and the text, as those of AsciiDoc and of DocBook with icons. */
const nameNotesInTables = (page: Document): void => {
  for (const table of page.querySelectorAll("div > table")) {
    const { parentElement: note } = table
    const names = note?.getAttribute("class") ?? ""
    if (note === null || (kindOf(names) === undefined && !/(?:^|\s)admonitionblock(?=$|\s)/.test(names)))
      continue
    const cells = [...table.querySelectorAll("td, th")].slice(0, maxNoteCells + 1)
    if (cells.length < 2 || cells.length > maxNoteCells) continue
    const [content, label, ...others] = cells.filter((cell) => textOf(cell) !== "").toReversed()
    if (content === undefined || others.length > 0) continue
    const icon = table.querySelector("[title]")?.getAttribute("title") ?? ""
    const title = label === undefined ? icon : textOf(label)
    nameNote(page, note, kindOf(names) ?? kindOf(title) ?? "note", title)
    note.insertBefore(content, table)
    replaceBy(page, content, "div")
    table.remove()
  }
}

/** Maximum levels of callouts within each other. The extraction's time doubles with each level. */
const maxCalloutLevels = 4

/**
 * Adds an empty figure to each callout. The extraction judges blocks without one by their words, and removes a warning
 * about headers and footers. Callouts within too many others become text of them.
 */
const protectCallouts = (page: Document): void => {
  const callouts = ".admonition, .alert, .markdown-alert"
  const levels = new Map<Node, number>()
  for (const note of page.querySelectorAll(callouts)) {
    const outer = note.parentElement?.closest(callouts) ?? null
    const level = 1 + (outer === null ? 0 : (levels.get(outer) ?? maxCalloutLevels))
    levels.set(note, level)
    if (level <= maxCalloutLevels) note.insertBefore(page.createElement("figure"), null)
  }
  for (const [note, level] of levels) if (level > maxCalloutLevels) note.removeAttribute("class")
}

/** Boxes with a title beside the text, which have the name of a frame of pages. */
const openSidebars = (page: Document): void => {
  for (const title of page.querySelectorAll(".sidebar > p.sidebar-title, .sidebar > .titlepage")) {
    const box = title.parentElement
    if (box !== null && box.firstElementChild === title && isProse(box)) replaceBy(page, box, "div")
  }
}

/** Shows the panels of accordions and tabs with their titles, and makes notes beside the text part of it. */
export const showPanels = (page: Document): void => {
  const panelOf = controlled(byId(page), byLabel(page))
  showTabLists(page, panelOf)
  for (const control of page.querySelectorAll("button, [aria-expanded], [data-bs-target], [data-target]")) {
    const isNamed = panelName.test(nameOf(control))
    const panel = panelOf(control) ?? (isNamed ? control.nextElementSibling : null)
    if (panel === null || panel.tagName === "BUTTON" || !isProse(panel)) continue
    keepTitle(page, control)
    show(page, panel)
  }
  for (const panel of page.querySelectorAll("[hidden], [aria-hidden=true], [style]")) {
    const { parentElement: parent } = panel
    const names = [panel, parent, parent?.parentElement ?? null].map((node) =>
      node === null ? "" : nameOf(node)
    )
    if (isHidden(panel) && names.some((name) => panelName.test(name)) && isProse(panel)) show(page, panel)
  }
  nameAdmonitions(page)
  nameNotesWithHeadings(page)
  nameNotesInTables(page)
  protectCallouts(page)
  openSidebars(page)
  for (const note of page.querySelectorAll("aside.footnote, aside.footnote-list"))
    replaceBy(page, note, "div")
  for (const note of page.querySelectorAll("main aside, article aside, [role=main] aside")) {
    if (!isNoContent(nameOf(note)) && isProse(note)) replaceBy(page, note, "div")
  }
}
