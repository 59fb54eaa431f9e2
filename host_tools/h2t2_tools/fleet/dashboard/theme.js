
const describeOrder = head => {
    const sorted = head.classList.contains("sorted");
    const order = !sorted ? "none" : head.classList.contains("sort-desc") ? "descending" : "ascending";
    if (head.getAttribute("aria-sort") != order) head.setAttribute("aria-sort", order);
    if (head.tabIndex != 0) head.tabIndex = 0;
};
const describeOrders = () => document.querySelectorAll("th.sortable").forEach(describeOrder);
document.addEventListener("keydown", event => {
    if ((event.key == "Enter" || event.key == " ") && event.target.matches("th.sortable")) {
        event.preventDefault();
        event.target.click();
    }
});
document.addEventListener("DOMContentLoaded", () => {
    const options = {subtree: true, childList: true, attributes: true, attributeFilter: ["class"]};
    new MutationObserver(describeOrders).observe(document.body, options);
    describeOrders();
});
