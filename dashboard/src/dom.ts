// Elements. Text only ever goes in as text: names come from configurations and requests.

type Child = Node | string;
type Attributes = Record<string, string>;

/** An element with attributes and children. */
export function element<Name extends keyof HTMLElementTagNameMap>(
  name: Name,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[Name] {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

/** The element of the page with this id. */
export function byId(id: string): HTMLElement {
  const found = document.getElementById(id);
  if (!found) throw new Error(`the page has no #${id}`);
  return found;
}

/** Sets a text, and leaves alone what says so already: a selection in it stays. */
export function say(where: Element, text: string): void {
  if (where.textContent !== text) where.textContent = text;
}

/** Sets an attribute, if it is another. */
export function mark(where: Element, name: string, value: string): void {
  if (where.getAttribute(name) !== value) where.setAttribute(name, value);
}

/** Keeps one row an item, in order, and those that stay are the same elements: the focus stays where it is. */
export class Rows<Item> {
  private readonly kept = new Map<string, HTMLElement>();

  constructor(
    private readonly parent: HTMLElement,
    private readonly key: (item: Item) => string,
    private readonly make: (item: Item) => HTMLElement,
    private readonly update: (row: HTMLElement, item: Item) => void,
  ) {}

  show(items: readonly Item[]): void {
    const present = new Set(items.map(this.key));
    for (const [key, row] of this.kept) {
      if (!present.has(key)) {
        row.remove();
        this.kept.delete(key);
      }
    }
    let before = this.parent.firstElementChild;
    for (const item of items) {
      const key = this.key(item);
      const row = this.kept.get(key) ?? this.make(item);
      this.kept.set(key, row);
      this.update(row, item);
      if (row === before) before = row.nextElementSibling;
      else this.place(row, before);
    }
  }

  /** Moving an element takes the focus from what is in it. */
  private place(row: HTMLElement, before: Element | null): void {
    const focused = row.contains(document.activeElement) ? document.activeElement : null;
    this.parent.insertBefore(row, before);
    if (focused instanceof HTMLElement) focused.focus({ preventScroll: true });
  }
}
