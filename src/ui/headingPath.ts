/** The path of headings `A > B`, as titles and passages have it, for display. */
export const headingPath = (path: string): string => path.replaceAll(" > ", " › ")
