// Sorts a table by the column whose title is pressed; again for the other direction.
for (const button of document.querySelectorAll('th button')) {
  button.addEventListener('click', () => {
    const title = button.parentElement;
    const column = [...title.parentElement.children].indexOf(title);
    const descending = title.getAttribute('aria-sort') === 'ascending';
    for (const other of title.parentElement.children) other.removeAttribute('aria-sort');
    title.setAttribute('aria-sort', descending ? 'descending' : 'ascending');
    const body = title.closest('table').tBodies[0];
    const key = (row) => row.cells[column].dataset.key ?? row.cells[column].textContent;
    const compare = (left, right) => key(left).localeCompare(key(right), undefined, { numeric: true });
    const rows = [...body.rows].sort((left, right) => (descending ? compare(right, left) : compare(left, right)));
    body.append(...rows);
  });
}
