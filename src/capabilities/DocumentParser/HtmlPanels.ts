/**
 * Accordions, tabs and notes of a page. Their panels are hidden until a script shows them, and their titles are buttons and
 * labels. The extraction removes both.
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

/** Puts the name of a tab before its panel. */
const labelPanel = (page: Document, tab: Node, panel: Node): void => {
  const paragraph = page.createElement("p")
  paragraph.textContent = textOf(tab)
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

/** Finds the panel that a control names. Each panel is found once, because its text is read then. */
const controlled = (nodes: Map<string, Node>) => (control: Node) => {
  const target =
    control.getAttribute("aria-controls") ??
    control.getAttribute("data-bs-target") ??
    control.getAttribute("data-target")
  const id = target?.replace(/^#/, "") ?? ""
  const panel = nodes.get(id)
  nodes.delete(id)
  return panel
}

/** Of lists of tabs with roles, and of those that style sheets make of fields and labels. */
const showTabLists = (page: Document, panelOf: (control: Node) => Node | undefined): void => {
  for (const list of [...page.querySelectorAll("[role=tablist]")].slice(0, maxTabLists)) {
    const panels = list.parentElement?.querySelectorAll("[role=tabpanel]") ?? []
    if (showTabs(page, [...list.querySelectorAll("[role=tab]")], [...panels], panelOf)) list.remove()
  }
  for (const set of [...page.querySelectorAll(".tabbed-set")].slice(0, maxTabLists)) {
    const panels = set.querySelectorAll(".tabbed-block")
    showTabs(page, [...set.querySelectorAll(".tabbed-labels > label")], [...panels], () => undefined)
  }
  for (const panel of page.querySelectorAll("[role=tabpanel]")) if (isProse(panel)) show(page, panel)
}

/** Shows the panels of accordions and tabs with their titles, and makes notes beside the text part of it. */
export const showPanels = (page: Document): void => {
  const panelOf = controlled(byId(page))
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
  for (const note of page.querySelectorAll("main aside, article aside, [role=main] aside")) {
    if (!isNoContent(nameOf(note)) && isProse(note)) replaceBy(page, note, "div")
  }
}
